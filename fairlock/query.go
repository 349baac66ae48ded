package fairlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/lockhash"
	"github.com/holdfast-go/holdfast/lease"
)

// NoExpiry is what Remaining returns for a lock that Redis holds without an
// expiry. Holdfast never makes one.
const NoExpiry = lockhash.NoExpiry

// QueueLength returns how many wait for the lock, in all processes. All queries
// ask the master.
func (m *Mutex) QueueLength(ctx context.Context) (int, error) {
	call, err := m.look(ctx, m.resource.look(placeScript, ""))
	if err != nil {
		return 0, err
	}
	return int(call.Int(2)), nil
}

// Position returns how many are in the queue before that owner, of this process
// or another, and whether it waits at all. The next one has 0. One whose process
// died is counted until it is passed over.
func (m *Mutex) Position(ctx context.Context, owner lease.Owner) (ahead int, waits bool, err error) {
	call, err := m.look(ctx, m.resource.look(placeScript, owner.String()))
	if err != nil || call.Int(3) < 0 {
		return 0, false, err
	}
	return int(call.Int(3)), true, nil
}

// Waiters returns who waits for the lock, in all processes, the next one first.
//
// It asks for 256 places at a time, so that Redis serves others in between. A waiter
// that waits from the beginning to the end is in the list once, in order; one that comes or goes
// meanwhile may be in it or not.
func (m *Mutex) Waiters(ctx context.Context) ([]lease.Owner, error) {
	owners := []lease.Owner{}
	for from := "-inf"; from != ""; {
		call, err := m.look(ctx, m.resource.look(queueScript, from, pageSize))
		if err != nil {
			return nil, err
		}
		from = call.Text(2)
		for i := 3; i < call.Reply.Len(); i++ {
			owner, err := lease.ParseOwner(call.Text(i))
			if err != nil {
				return nil, m.fail("query", err)
			}
			owners = append(owners, owner)
		}
	}
	return owners, nil
}

// pageSize is how many places in the queue one call looks at.
const pageSize = 256

func (m *Mutex) look(ctx context.Context, call *conn.Call) (*conn.Call, error) {
	if m.err != nil {
		return nil, m.fail("query", m.err)
	}
	if err := m.resource.Engine.Conn.Run(ctx, call); err != nil {
		return nil, m.fail("query", err)
	}
	return call, nil
}

// Locked reports whether anybody holds the lock. A waiter to whom it was handed
// holds it already.
func (m *Mutex) Locked(ctx context.Context) (bool, error) {
	s, err := m.state(ctx)
	return s.Locked, err
}

// HeldBy reports whether that owner, of this process or another, holds the lock.
func (m *Mutex) HeldBy(ctx context.Context, owner lease.Owner) (bool, error) {
	count, err := m.HoldCount(ctx, owner)
	return count > 0, err
}

// HoldCount returns how many leases that owner, of this process or another, has
// on the lock, as Redis counts them; 0 if it does not hold it. For up to a second after a
// nested Lock or a Release whose request was not answered it may be one off: such a
// request can come late, and is set right when none can come any more.
func (m *Mutex) HoldCount(ctx context.Context, owner lease.Owner) (int, error) {
	s, err := m.state(ctx)
	return s.Count(owner), err
}

// Remaining returns how long the lock stays held if it is neither renewed nor
// released: 0 if nobody holds it, NoExpiry if that has no end.
func (m *Mutex) Remaining(ctx context.Context) (time.Duration, error) {
	s, err := m.state(ctx)
	return s.Remaining, err
}

// Holder returns who holds the lock; the zero Owner if nobody does. A holder
// whose id is no Owner's gives an error that matches ErrBadArgument.
func (m *Mutex) Holder(ctx context.Context) (lease.Owner, error) {
	s, err := m.state(ctx)
	if err != nil {
		return lease.Owner{}, err
	}
	return s.Holder()
}

// ForceRelease takes the lock from whoever holds it and hands it to the next who
// waits. It reports whether anybody held it. Leases of this Client on the lock
// end at once, those of others with their next renewal; in both cases with
// ErrLost.
//
// Work of the holder may still be going on: this is for people who know that it
// is not.
func (m *Mutex) ForceRelease(ctx context.Context) (bool, error) {
	if m.err != nil {
		return false, m.fail("force release", m.err)
	}
	held, err := m.resource.ForceRelease(ctx, m.resource.Engine, m.resource.ReleaseOf)
	if err != nil {
		return false, m.fail("force release", err)
	}
	return held, nil
}

func (m *Mutex) state(ctx context.Context) (lockhash.State, error) {
	if m.err != nil {
		return lockhash.State{}, m.fail("query", m.err)
	}
	s, err := m.resource.Query(ctx, m.resource.Engine)
	if err != nil {
		return lockhash.State{}, m.fail("query", err)
	}
	return s, nil
}
