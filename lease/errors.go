// The errors of Holdfast.

package lease

import "github.com/holdfast-go/holdfast/internal/errs"

// The errors of Holdfast, one for each fact. A returned error wraps one of them, and names the
// operation and the key: compare with errors.Is.
var (
	// ErrBusy says that another holds the thing: a try found it held, or a wait ended, with its
	// context, before it was free. After a wait the error matches the context's error too. See
	// BusyError.
	ErrBusy = errs.Busy

	// ErrUnavailable says that Redis could not be reached, or did not answer, in time: before the
	// context's deadline or, for a call that does not wait, within 3 s. If waiting cannot help, the call
	// fails at once: one side refuses the other's certificate, the server does not speak TLS, or the
	// program has closed its go-redis client. ErrUnavailable does not say whether anybody holds the thing.
	// If the wait had found the thing held before, the error matches ErrBusy too. The error of a cancelled
	// call does not match ErrUnavailable.
	ErrUnavailable = errs.Unavailable

	// ErrLost says that the lease ended without its release: Redis no longer has the hold,
	// or could not be reached before the lease was over.
	ErrLost = errs.Lost

	// ErrExpired says that a fixed lease ended as agreed: the time that it was granted for is over.
	// It matches ErrLost too, because work must stop all the same.
	ErrExpired = errs.Expired

	// ErrReleased says that the lease was released before.
	ErrReleased = errs.Released

	// ErrMaxHold says that the lease was ended because it was held for longer
	// than MaxHold allows.
	ErrMaxHold = errs.MaxHold

	// ErrClosed says that the Client was closed, or that Shutdown has begun.
	ErrClosed = errs.Closed

	// ErrWrongType says that the key has something other than what the kind keeps there, such as a lock
	// of another library. Holdfast left it as it is. The error of a call that takes something says what
	// is there.
	ErrWrongType = errs.WrongType

	// ErrOutOfMemory says that Redis has reached its maxmemory and refuses to
	// grant anything new. Releases and renewals still work.
	ErrOutOfMemory = errs.OutOfMemory

	// ErrDenied says that Redis refused the call because of missing rights: no password, a wrong
	// password, or an ACL rule.
	ErrDenied = errs.Denied

	// ErrBadArgument says that an argument or an option of the call makes no sense. Nothing was
	// changed.
	ErrBadArgument = errs.BadArgument

	// ErrUpgrade says that a reader asked for the write side of the lock that it holds, and so
	// would wait for itself. Release the read lease first. Once the write lease is granted, look
	// again at what was read.
	ErrUpgrade = errs.Upgrade

	// ErrNoPermits says that the permits do not exist: more were asked for than the semaphore has
	// in all, or no permit with that id is taken.
	ErrNoPermits = errs.NoPermits

	// ErrDeleted says that the thing that was waited for has been deleted, or has run out.
	ErrDeleted = errs.Deleted

	// ErrNotReplicated says that fewer replicas than Replicas demands acknowledged a write in time. A
	// grant is taken back. But the later end of an Extend or AtLeast, and the result of a Once, stay on
	// the master.
	ErrNotReplicated = errs.NotReplicated

	// ErrUnknown says that a call that changes something was not answered. It may have taken
	// effect, or may still take effect, but at most once. Calls that leave nothing behind when they
	// fail never return it.
	ErrUnknown = errs.Unknown

	// ErrMismatch says that the key of a Once belongs to work on another payload: the fingerprints
	// differ. Nothing was done.
	ErrMismatch = errs.Mismatch

	// ErrTooLarge says that the result of the work of a Once is too large to be kept. The work has
	// been done, and nothing was written.
	ErrTooLarge = errs.TooLarge

	// ErrWorkFailed says that the work of a Once has failed before, and that its error was kept. The
	// text of that error follows.
	ErrWorkFailed = errs.WorkFailed

	// ErrNoQuorum says that too few of a Quorum's servers could be asked, or that too few count.
	// It does not say that another holds the lock.
	ErrNoQuorum = errs.NoQuorum

	// ErrNoLeader says that nobody leads at present: see package leader.
	ErrNoLeader = errs.NoLeader

	// ErrResigned says that a leader's term ended before its lease: the leader resigned, was asked
	// to, or had led for its MaxTerm; or its work gave no sign of life. See package leader.
	ErrResigned = errs.Resigned

	// ErrBroken says that a generation of a Barrier has broken before all parties had come: the wait
	// of one of them ended, or its process died. None of its parties go on. See package barrier.
	ErrBroken = errs.Broken

	// ErrParties says that the open generation of a Barrier is for another number of parties.
	// Nothing was changed.
	ErrParties = errs.Parties

	// ErrPaused says that the name is paused, by Client.Pause. The text says by whom, why, and until when.
	ErrPaused = errs.Paused

	// ErrSuperseded says that a newer Lock wants the lock: see Supersede.
	ErrSuperseded = errs.Superseded
)
