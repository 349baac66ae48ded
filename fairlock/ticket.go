// One wait for the lock that a program can watch.

package fairlock

import (
	"context"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// Ticket is one wait for the lock that a program can watch while it lasts, because its owner is
// known from the start.
type Ticket struct {
	mutex *Mutex
	owner lease.Owner
	used  atomic.Bool
}

// Ticket returns a ticket for one Lock. It does no I/O, and takes no place yet.
func (m *Mutex) Ticket() *Ticket {
	t := &Ticket{mutex: m}
	if m.lock().Usable("lock") == nil {
		t.owner = lease.Owner(hold.NewOwner(m.resource.Engine.NewOwner()))
	}
	return t
}

// Owner returns the id under which the ticket's Lock waits and holds.
func (t *Ticket) Owner() lease.Owner { return engine.Made(t).owner }

// Lock is Mutex.Lock, with the ticket's owner and without re-entry. It can be called once. After
// that the error matches ErrBadArgument.
func (t *Ticket) Lock(ctx context.Context) (*lease.Lease, error) {
	m := engine.Made(t).mutex
	if err := m.lock().Usable("lock"); err != nil {
		return nil, err
	}
	if t.used.Swap(true) {
		return nil, m.resource.Failed("lock with a used ticket on", errs.BadArgument)
	}
	q := m.request()
	q.As, q.Afresh = hold.Owner(t.owner), true
	return lease.Of(q.Acquire(ctx))
}

// Position returns Mutex.Position of the ticket's owner.
func (t *Ticket) Position(ctx context.Context) (ahead int, waits bool, err error) {
	t = engine.Made(t)
	return t.mutex.Position(ctx, t.owner)
}
