// The names of other packages that programs use most.

package holdfast

import (
	"github.com/holdfast-go/holdfast/barrier"
	"github.com/holdfast-go/holdfast/fairlock"
	"github.com/holdfast-go/holdfast/latch"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/quorum"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/rwlock"
	"github.com/holdfast-go/holdfast/semaphore"
	"github.com/holdfast-go/holdfast/shards"
	"github.com/holdfast-go/holdfast/slots"
)

// Aliases of the types that programs use most. With these aliases, most programs import only this package.
// Package lease documents each type.
type (
	// Lease is one acquisition of something: lease.Lease.
	Lease = lease.Lease
	// Locker is anything that can be locked and returns a Lease: lease.Locker.
	Locker = lease.Locker
	// Owner is the id under which Redis knows a hold: lease.Owner.
	Owner = lease.Owner
	// BusyError is part of errors that match ErrBusy, and says who holds the lock: lease.BusyError.
	BusyError = lease.BusyError
)

// Aliases of the synchronizers, for fields and signatures. The packages of the synchronizers document their
// methods.
type (
	// Mutex is a reentrant lock: rlock.Mutex.
	Mutex = rlock.Mutex
	// FairMutex is a Mutex that is granted in the order of arrival: fairlock.Mutex.
	FairMutex = fairlock.Mutex
	// RWMutex is a read/write lock: rwlock.RWMutex.
	RWMutex = rwlock.RWMutex
	// Striped is a fixed number of locks for many keys: rlock.Striped.
	Striped = rlock.Striped
	// Stripe is one lock of a Striped: rlock.Stripe.
	Stripe = rlock.Stripe
	// Semaphore counts permits that nobody owns: semaphore.Semaphore.
	Semaphore = semaphore.Semaphore
	// PermitSemaphore leases its permits: semaphore.PermitSemaphore.
	PermitSemaphore = semaphore.PermitSemaphore
	// Slots leases numbers, each to one holder: slots.Slots.
	Slots = slots.Slots
	// Slot is a lease on one number of a Slots: slots.Slot.
	Slot = slots.Slot
	// Shards divides work among processes: shards.Shards.
	Shards = shards.Shards
	// Latch is a countdown latch: latch.Latch.
	Latch = latch.Latch
	// Barrier lets a number of parties wait for each other: barrier.Barrier.
	Barrier = barrier.Barrier
	// Once does the work of each key once, and keeps the result: once.Once.
	Once = once.Once
	// Limiter bounds how much is done in a period of time: limiter.Limiter.
	Limiter = limiter.Limiter
	// Election elects one leader: leader.Election.
	Election = leader.Election
	// Term is one period in which a process leads an Election: leader.Term.
	Term = leader.Term
	// MultiLock is several locks that are taken together: multilock.MultiLock.
	MultiLock = multilock.MultiLock
	// MultiLease is a lease on all locks of a MultiLock: multilock.Lease.
	MultiLease = multilock.Lease
	// Quorum is one lock on a majority of independent servers: quorum.Quorum.
	Quorum = quorum.Quorum
	// QuorumLease is a lease on a Quorum: quorum.Lease.
	QuorumLease = quorum.Lease
)

// The errors of Holdfast. Compare a returned error with errors.Is. Package lease documents each error.
var (
	ErrBusy          = lease.ErrBusy
	ErrUnavailable   = lease.ErrUnavailable
	ErrLost          = lease.ErrLost
	ErrExpired       = lease.ErrExpired
	ErrReleased      = lease.ErrReleased
	ErrMaxHold       = lease.ErrMaxHold
	ErrClosed        = lease.ErrClosed
	ErrWrongType     = lease.ErrWrongType
	ErrOutOfMemory   = lease.ErrOutOfMemory
	ErrDenied        = lease.ErrDenied
	ErrNotReplicated = lease.ErrNotReplicated
	ErrBadArgument   = lease.ErrBadArgument
	ErrUpgrade       = lease.ErrUpgrade
	ErrNoPermits     = lease.ErrNoPermits
	ErrDeleted       = lease.ErrDeleted
	ErrUnknown       = lease.ErrUnknown
	ErrPaused        = lease.ErrPaused
	ErrSuperseded    = lease.ErrSuperseded
	ErrMismatch      = lease.ErrMismatch
	ErrTooLarge      = lease.ErrTooLarge
	ErrWorkFailed    = lease.ErrWorkFailed
	ErrNoQuorum      = lease.ErrNoQuorum
	ErrNoLeader      = lease.ErrNoLeader
	ErrResigned      = lease.ErrResigned
	ErrBroken        = lease.ErrBroken
	ErrParties       = lease.ErrParties
)

// ParseOwner parses a string that Owner.String returned: lease.ParseOwner.
func ParseOwner(s string) (Owner, error) { return lease.ParseOwner(s) }
