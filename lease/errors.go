// The errors of Holdfast.

package lease

import "github.com/holdfast-go/holdfast/internal/errs"

// The errors of Holdfast. A returned error wraps one of them, and its text names the operation and the key.
// Compare it by errors.Is.
var (
	// ErrBusy says that somebody else holds what the call wants, for example the lock. Either a TryLock
	// found the lock held, or the context of a waiting call ended before the lock was free. After a wait
	// the error also matches the context's error. See BusyError.
	ErrBusy = errs.Busy

	// ErrUnavailable says that Redis could not be reached in time, or did not answer in time. A call
	// that waits has time until its context's deadline. A call that does not wait has 3 s, or until the
	// deadline if that is earlier. The call fails at once if waiting cannot help, because the client or
	// the server refuses the certificate of the other, the server does not speak TLS, or the program has
	// closed its go-redis client. ErrUnavailable does not say whether anybody holds the lock. If the
	// call had found the lock held before Redis was out of reach, the error also matches ErrBusy. If the
	// call was cancelled, its error does not match ErrUnavailable.
	ErrUnavailable = errs.Unavailable

	// ErrLost says that the lease ended before it was released. Either Redis no longer has the hold, or
	// Redis could not be reached before the lease was over.
	ErrLost = errs.Lost

	// ErrExpired says that a fixed lease ended as agreed, because the time for which the lease was
	// granted is over. The error also matches ErrLost, because work must stop after a loss and after an
	// expiry.
	ErrExpired = errs.Expired

	// ErrReleased says that the lease has already been released.
	ErrReleased = errs.Released

	// ErrMaxHold says that Holdfast ended the lease because the lease was held for longer than MaxHold
	// allows.
	ErrMaxHold = errs.MaxHold

	// ErrClosed says that the Client was closed, or that Shutdown has begun.
	ErrClosed = errs.Closed

	// ErrWrongType says that the key holds something that this kind of synchronizer does not store there,
	// such as a lock of another library. Holdfast has not changed the key. If the call takes something, as
	// Lock does, the text of its error says what the key holds.
	ErrWrongType = errs.WrongType

	// ErrOutOfMemory says that Redis has reached its maxmemory and refuses to grant anything new. Releases
	// and renewals still work.
	ErrOutOfMemory = errs.OutOfMemory

	// ErrDenied says that Redis refused the call because the Redis user lacks rights: the password is
	// missing or wrong, or an ACL rule forbids the call.
	ErrDenied = errs.Denied

	// ErrBadArgument says that an argument or an option of the call is wrong. Nothing was changed.
	ErrBadArgument = errs.BadArgument

	// ErrUpgrade says that a caller that holds a read lease asked for the write side of the same lock.
	// The call would have waited for the caller's own read lease. Release the read lease first, and then
	// lock the write side. After that, read the protected data again, because another writer may have
	// changed it.
	ErrUpgrade = errs.Upgrade

	// ErrNoPermits says that the permits do not exist. Either the call asked for more permits than the
	// semaphore has in all, or no permit with the given id is taken.
	ErrNoPermits = errs.NoPermits

	// ErrDeleted says that the thing for which the call waited was deleted, or has run out.
	ErrDeleted = errs.Deleted

	// ErrNotReplicated says that fewer replicas acknowledged a write in time than the option Replicas
	// demands. If the write was a grant, Holdfast takes the grant back. If Extend or AtLeast has set a
	// later end of the lease, or if a Once has stored a result, that write stays on the master.
	ErrNotReplicated = errs.NotReplicated

	// ErrUnknown says that Redis did not answer a call that changes something. The call may have taken
	// effect, or may take effect later, but at most once. If a call leaves nothing behind when it fails,
	// this call never returns ErrUnknown.
	ErrUnknown = errs.Unknown

	// ErrMismatch says that the key of a Once already belongs to work on another payload: the fingerprints
	// of the two payloads differ. Nothing was done.
	ErrMismatch = errs.Mismatch

	// ErrTooLarge says that the result of the work of a Once is too large to be kept. The work was done,
	// but nothing was written to Redis.
	ErrTooLarge = errs.TooLarge

	// ErrWorkFailed says that the work of a Once has failed earlier, and that the error of the work was
	// kept. In the text of the returned error, the kept error follows.
	ErrWorkFailed = errs.WorkFailed

	// ErrNoQuorum says that too few servers of a Quorum could be asked, or that too few of the servers
	// count, because a server that has lost its data does not count for a while. ErrNoQuorum does not
	// say that another caller holds the lock.
	ErrNoQuorum = errs.NoQuorum

	// ErrNoLeader says that nobody leads at present: see package leader.
	ErrNoLeader = errs.NoLeader

	// ErrResigned says that a leader's term ended before its lease. There are four reasons: the leader
	// resigned, somebody asked it to resign, it had led for its MaxTerm, or its work no longer reported
	// that the work was alive. In package shards, ErrResigned says that another member is to have the
	// shard. See packages leader and shards.
	ErrResigned = errs.Resigned

	// ErrBroken says that a generation of a Barrier broke before all parties had come. Either the wait
	// of one party ended, or the process of one party died, or somebody called Reset. No party of that
	// generation goes on. See package barrier.
	ErrBroken = errs.Broken

	// ErrParties says that this call of a Barrier gave another number of parties than the open
	// generation needs. Nothing was changed.
	ErrParties = errs.Parties

	// ErrPaused says that the name is paused by Client.Pause. The text of the error says who has paused
	// the name, why, and until when.
	ErrPaused = errs.Paused

	// ErrSuperseded says that a newer call of Lock wants the lock: see Supersede.
	ErrSuperseded = errs.Superseded
)
