// Package fairlock is the reentrant lock that is granted in the order of arrival, across processes.
// The lock itself is that of package rlock, in the layout of Redisson's RLock, so both kinds and Java exclude one
// another. The queue is Holdfast's own: sorted sets in the order of the
// server's clock.
//
// Programs make a Mutex with Client.FairMutex.
package fairlock

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// Mutex is a fair lock that is shared by everybody that uses its name. It holds no state: any
// number of goroutines may use one value, and whatever differs from holder to holder is in the
// Lease that each Lock returns.
type Mutex struct {
	resource resource
	settings *hold.Settings // of the Client, or its own
}

var _ lease.Locker = (*Mutex)(nil)

// New returns the fair lock of that name, which is at key in Redis. It does no I/O. If something is
// wrong with the arguments, each call returns the error.
func New(e *engine.Engine, name, key string, settings *hold.Settings) *Mutex {
	return &Mutex{newResource(e, name, key, settings), settings}
}

// Name returns the name that the lock was made with.
func (m *Mutex) Name() string { return m.lock().Name() }

// Place implements lease.Placed.
func (m *Mutex) Place() string { return m.lock().Place() }

// Lock waits until the lock is granted and returns the Lease, which the caller must release. If ctx
// was made by Lease.Context of a lease on this same lock, Lock re-enters it: it returns at once,
// with another Lease.
//
// Waiters are served in the order in which Redis heard of them. A release hands the lock to the
// next one. A waiter is passed over if its process has died, or was cut off, and has sent nothing
// for 5 s. A process that was cut off takes its old place again when it is back. Java programs that
// wait for the same name are outside the queue: they get the lock when nobody is in the queue.
//
// Lock waits as long as ctx allows. If ctx ends first, the error matches ctx's error and, if the
// lock was found held, ErrBusy; the place in the queue is given up, and no other hold is touched.
// Transient errors of Redis are retried until ctx ends. ErrWrongType, ErrOutOfMemory, ErrDenied and
// ErrBadArgument are returned at once. If ctx carries a lease that has ended, Lock returns the
// error of that lease.
func (m *Mutex) Lock(ctx context.Context) (*lease.Lease, error) {
	if err := m.lock().Usable("lock"); err != nil {
		return nil, err
	}
	return lease.Of(m.request().Acquire(ctx))
}

// TryLock is Lock without the wait: one request, no place in the queue. If another holds the lock,
// or waits for it, the error matches ErrBusy. If Redis does not answer within 3 s, or before ctx's
// deadline, the error matches ErrUnavailable.
func (m *Mutex) TryLock(ctx context.Context) (*lease.Lease, error) {
	if err := m.lock().Usable("try lock"); err != nil {
		return nil, err
	}
	q := m.request()
	q.Try = true
	return lease.Of(q.Acquire(ctx))
}

// LeaseFrom returns the lease that ctx carries on the lock: the innermost, if it carries several. It is
// the lease that a Lock with ctx would re-enter, and it may have ended. ok is false if ctx carries
// none. LeaseFrom does no I/O. A lease of another Client does not count, nor one of another kind of
// lock of the same name.
func (m *Mutex) LeaseFrom(ctx context.Context) (l *lease.Lease, ok bool) {
	r := m.lock()
	carried := hold.Carried(ctx, r.Engine, r)
	return (*lease.Lease)(carried), carried != nil
}

// Attach takes over the hold that Lease.Detach left under that owner, in this process or another.
// It returns a Lease on it, with the hold's token and a new Owner. If several callers attach, one
// of them gets the hold. For the others, and after the hold has run out, the error matches ErrLost.
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
