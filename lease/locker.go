// The Locker: whatever can be held.

package lease

import "context"

// Locker is something that callers can hold. Each successful call of Lock or TryLock returns another Lease.
type Locker interface {
	// Lock waits until the lock is granted or ctx ends. If ctx ends the wait, the error matches ctx's error
	// and ctx's cause. If the grant comes at the moment when ctx ends, Lock returns the lease, and the
	// caller must release it.
	Lock(ctx context.Context) (*Lease, error)
	// TryLock asks once and does not wait. If another caller holds the lock, the error matches ErrBusy.
	TryLock(ctx context.Context) (*Lease, error)
}

// Placed is a Locker that can be sorted. If all callers that lock several Lockers sort them first, they all
// lock them in the same order. A Mutex, a FairMutex, a stripe and both sides of an RWMutex are Placed.
// PermitSemaphore.Locker is not Placed.
type Placed interface {
	Locker
	// Place returns the text by which Lockers are sorted: the key of the lock, and the address of its
	// server. Two processes with the same configuration get the same text for a lock, and different locks
	// get different texts. If every call of the Locker fails, Place returns "".
	Place() string
}
