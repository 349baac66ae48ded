// The errors of Holdfast.

package lease

import (
	"fmt"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// The errors of Holdfast, one for each fact. What is returned wraps one of them
// and names the operation and the key: compare with errors.Is.
var (
	// ErrBusy says that a try, or a wait until its context ended, found the
	// thing held by another. After a wait the error matches the context's error
	// too.
	ErrBusy = errs.Busy

	// ErrUnavailable says that Redis could not be reached, or did not answer, in
	// time: before the context's deadline or, for a call that does not wait, within
	// 3 s. It says nothing of who holds what. Where the wait had found the thing held
	// before, the error matches ErrBusy too. A cancelled call does not match it.
	ErrUnavailable = errs.Unavailable

	// ErrLost says that the lease ended by itself: Redis no longer has the hold,
	// or could not be reached before the lease was over.
	ErrLost = errs.Lost

	// ErrReleased says that the lease was released before.
	ErrReleased = errs.Released

	// ErrMaxHold says that the lease was ended because it was held for longer
	// than MaxHold allows.
	ErrMaxHold = errs.MaxHold

	// ErrClosed says that the Client was closed.
	ErrClosed = errs.Closed

	// ErrWrongType says that the key holds something that is no lock. It was
	// left as it is.
	ErrWrongType = errs.WrongType

	// ErrOutOfMemory says that Redis has reached its maxmemory and refuses to
	// grant anything new. Releases and renewals still work.
	ErrOutOfMemory = errs.OutOfMemory

	// ErrDenied says that Redis refused for want of rights: no password, a wrong
	// one, or an ACL rule.
	ErrDenied = errs.Denied

	// ErrBadArgument says that the call could not be made sense of. Nothing was
	// sent.
	ErrBadArgument = errs.BadArgument

	// ErrUpgrade says that a reader asked for the write side of the lock that it
	// holds. It would wait for itself. Release the read lease first, and look
	// again at what was read once the write lease is there.
	ErrUpgrade = errs.Upgrade

	// ErrNoPermits says that there are no such permits: more were asked for than
	// the semaphore has in all, or none of that id is taken.
	ErrNoPermits = errs.NoPermits

	// ErrDeleted says that what was waited for has been deleted, or has run out.
	ErrDeleted = errs.Deleted

	// ErrNotReplicated says that a grant was taken back because fewer replicas
	// than Replicas asks for had acknowledged it in time.
	ErrNotReplicated = errs.NotReplicated

	// ErrUnknown says that a call which changes something was not answered, and
	// that it may have taken effect, or may still do so once. Calls of which
	// nothing is left when they fail never return it.
	ErrUnknown = errs.Unknown

	// ErrNoQuorum says that fewer than a majority of a Quorum's servers could be
	// asked, or count at present. It does not say that another holds the lock.
	ErrNoQuorum = errs.NoQuorum
)

// opError adds to err what was being done to what.
func opError(op string, r Resource, err error) error {
	return CallError(op, r.Kind(), r.Name(), err)
}

// CallError adds to err what was being done to what. It is for the packages of
// the synchronizers that lease nothing.
func CallError(op, kind, name string, err error) error {
	return fmt.Errorf("holdfast: %s %s %s: %w", op, kind, Quote(name), err)
}

// OpError adds to err what was being done to what. It is for the packages of the
// synchronizers.
func OpError(op string, r Resource, err error) error { return opError(op, r, err) }

// quoted is how much of a name an error shows.
const quoted = 64

// Quote returns the name of a synchronizer as errors show it: quoted, and cut
// if it is very long.
func Quote(name string) string {
	if len(name) > quoted {
		return fmt.Sprintf("%q… (%d bytes)", name[:quoted], len(name))
	}
	return fmt.Sprintf("%q", name)
}
