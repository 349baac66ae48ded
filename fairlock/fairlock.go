// Package fairlock has the reentrant lock that is granted in the order of arrival, across processes. The
// lock itself is the lock of package rlock, in the layout of Redisson's RLock. So a FairMutex, a Mutex and
// a Java lock of the same name exclude each other. The queue of waiters is Holdfast's own: sorted sets in
// Redis, in the order of the server's clock.
//
// Programs make a Mutex of this package with Client.FairMutex.
package fairlock

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// Mutex is a fair lock that all callers that use its name share. A Mutex holds no state: any number of
// goroutines may use one value. What differs from holder to holder is in the Lease that each Lock returns.
type Mutex struct {
	resource resource
	settings *hold.Settings // of the Client, or its own
}

var _ lease.Locker = (*Mutex)(nil)

// New returns the fair lock of that name. key is the key of the lock in Redis. New does no I/O. If an
// argument is wrong, every call on the lock returns the error.
func New(e *engine.Engine, name, key string, settings *hold.Settings) *Mutex {
	return &Mutex{newResource(e, name, key, settings), settings}
}

// Name returns the name that the lock was made with.
func (m *Mutex) Name() string { return m.lock().Name() }

// Place implements lease.Placed.
func (m *Mutex) Place() string { return m.lock().Place() }

// Lock waits until the lock is granted and returns the Lease, which the caller must release. If ctx comes
// from Lease.Context of a lease on this same lock, Lock re-enters the lock: it returns at once, with
// another Lease.
//
// Waiters get the lock in the order in which their first requests reached Redis. A release hands the lock
// to the next waiter. If a waiter's process has sent nothing for 5 s, because it has died or was cut off,
// the waiter is passed over. If a process was cut off and comes back, its waiters get their old places in
// the queue again. Java programs that wait for the same name are not in the queue: they get the lock when
// the queue is empty.
//
// Lock waits as long as ctx allows. If ctx ends first, the error matches ctx's error. It also matches
// ErrBusy if Lock has found the lock held. Then Lock gives up its place in the queue, and no other hold is
// changed. If Redis returns a transient error, Lock tries again until ctx ends. Lock returns ErrWrongType,
// ErrOutOfMemory, ErrDenied and ErrBadArgument at once. If ctx carries a lease that has ended, Lock returns
// the error of that lease.
func (m *Mutex) Lock(ctx context.Context) (*lease.Lease, error) {
	if err := m.lock().Usable("lock"); err != nil {
		return nil, err
	}
	return lease.Of(m.request().Acquire(ctx))
}

// TryLock is Lock without the wait: it sends one request and takes no place in the queue. If another caller
// holds the lock or waits for it, the error matches ErrBusy. If Redis does not answer within 3 s, or before
// ctx's deadline, the error matches ErrUnavailable.
func (m *Mutex) TryLock(ctx context.Context) (*lease.Lease, error) {
	if err := m.lock().Usable("try lock"); err != nil {
		return nil, err
	}
	q := m.request()
	q.Try = true
	return lease.Of(q.Acquire(ctx))
}

// LeaseFrom returns the lease on this lock that ctx carries. If ctx carries several, LeaseFrom returns the
// innermost, which is the lease that Lock with ctx would re-enter. The lease may have ended. If ctx carries
// no lease on this lock, ok is false. A lease of another Client does not count. A lease on another kind of
// lock with the same name does not count either. LeaseFrom does no I/O.
func (m *Mutex) LeaseFrom(ctx context.Context) (l *lease.Lease, ok bool) {
	r := m.lock()
	carried := hold.Carried(ctx, r.Engine, r)
	return (*lease.Lease)(carried), carried != nil
}

// Attach takes over the hold that Lease.Detach left under owner, in this process or another. It returns a
// Lease with the token of that hold and with a new Owner. If several callers attach with the same owner,
// only one of them gets the hold, and the others get an error that matches ErrLost. After the hold has run
// out, the error also matches ErrLost.
func (m *Mutex) Attach(ctx context.Context, owner lease.Owner) (*lease.Lease, error) {
	if err := m.lock().Usable("attach"); err != nil {
		return nil, err
	}
	return lease.Of(hold.Attach(ctx, m.resource.Engine, &m.resource, hold.Owner(owner), *m.settings))
}

func (m *Mutex) request() hold.Request {
	return hold.Request{Engine: m.resource.Engine, Resource: &m.resource, Settings: *m.settings}
}

// lock returns the lock. For a nil or zero Mutex it returns one whose every call fails.
func (m *Mutex) lock() *resource {
	if m == nil || m.settings == nil {
		r := newResource(nil, "", "", new(hold.Settings))
		return &r
	}
	return &m.resource
}
