// The Locker: whatever can be held.

package lease

import "context"

// Locker is something that can be held: each call that succeeds returns another Lease.
type Locker interface {
	// Lock waits until the thing is granted or ctx ends. If ctx ends the wait, the error matches
	// ctx's error and its cause. If the grant comes just as ctx ends, Lock returns the lease, and
	// the caller must release it.
	Lock(ctx context.Context) (*Lease, error)
	// TryLock asks once and does not wait. If another holds the thing, the error matches ErrBusy.
	TryLock(ctx context.Context) (*Lease, error)
}

// Placed is a Locker that can be put in order with others, so that all callers that lock several of
// them do so in the same order. A Mutex, a FairMutex, a stripe and both sides of an RWMutex are
// Placed. The permits of PermitSemaphore.Locker are not.
type Placed interface {
	Locker
	// Place returns the text by which things are put in order: the key of the thing, and the address of its
	// server. It is the same in every process that is configured alike, and differs from thing to thing. It
	// is "" for a Locker whose every call fails.
	Place() string
}
