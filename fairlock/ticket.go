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

// Ticket is one wait for the lock that a program can watch. The program knows the Owner of the wait before
// it calls Lock.
type Ticket struct {
	mutex *Mutex
	owner lease.Owner
	used  atomic.Bool
}

// Ticket returns a ticket for one call of Lock. It does no I/O, and does not join the queue yet.
func (m *Mutex) Ticket() *Ticket {
	t := &Ticket{mutex: m}
	if m.lock().Usable("lock") == nil {
		t.owner = lease.Owner(hold.NewOwner(m.resource.Engine.NewOwner()))
	}
	return t
}

// Owner returns the id under which the ticket's Lock waits for the lock and then holds it.
func (t *Ticket) Owner() lease.Owner { return engine.Made(t).owner }

// Lock is Mutex.Lock with the ticket's owner, and it never re-enters. You can call it once. After that the
// error matches ErrBadArgument.
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

// Position is Mutex.Position for the ticket's owner.
func (t *Ticket) Position(ctx context.Context) (ahead int, waits bool, err error) {
	t = engine.Made(t)
	return t.mutex.Position(ctx, t.owner)
}
