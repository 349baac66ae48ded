// Queries about the lock and its queue, and its release by force.

package fairlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// QueueLength returns the number of waiters for the lock, in all processes. Like all queries, it
// asks the master.
func (m *Mutex) QueueLength(ctx context.Context) (int, error) {
	call, err := m.look(ctx, m.lock().look(placeScript, ""))
	if err != nil {
		return 0, err
	}
	waiting, _, _ := placeIn(call)
	return waiting, nil
}

// Position returns how many waiters are in the queue before that owner, of this process or another,
// and whether that owner waits at all. For the next one, ahead is 0. A waiter whose process died is
// counted until it is passed over.
func (m *Mutex) Position(ctx context.Context, owner lease.Owner) (ahead int, waits bool, err error) {
	call, err := m.look(ctx, m.lock().look(placeScript, owner.String()))
	if err != nil {
		return 0, false, err
	}
	_, ahead, waits = placeIn(call)
	return ahead, waits, nil
}

// Waiters returns the waiters for the lock, in all processes, the next one first.
//
// It asks for 256 places at a time, so that Redis serves others in between. A waiter that waits
// during the whole call is in the list once, in order. One that comes or goes during the call may
// be in the list or not.
func (m *Mutex) Waiters(ctx context.Context) ([]lease.Owner, error) {
	owners := []lease.Owner{}
	for from := "-inf"; from != ""; {
		call, err := m.look(ctx, m.lock().look(queueScript, from, pageSize))
		if err != nil {
			return nil, err
		}
		if owners, from, err = addWaiters(owners, call); err != nil {
			return nil, m.lock().Failed("query", err)
		}
	}
	return owners, nil
}

// pageSize is how many places in the queue one call looks at.
const pageSize = 256

func (m *Mutex) look(ctx context.Context, call *conn.Call) (*conn.Call, error) {
	if err := m.lock().Run(ctx, "query", call); err != nil {
		return nil, err
	}
	return call, nil
}

// Locked reports whether anybody holds the lock. A waiter that was handed the lock holds it
// already.
func (m *Mutex) Locked(ctx context.Context) (bool, error) {
	s, err := m.lock().Query(ctx)
	return s.Locked, err
}

// HeldBy reports whether that owner, of this process or another, holds the lock.
func (m *Mutex) HeldBy(ctx context.Context, owner lease.Owner) (bool, error) {
	count, err := m.HoldCount(ctx, owner)
	return count > 0, err
}

// HoldCount returns how many leases that owner, of this process or another, has on the lock, as
// Redis counts them; 0 if it does not hold the lock. After a nested Lock or a Release whose request
// was not answered, the count may be wrong by one for up to a second: such a request can arrive
// late. The count is corrected once none can.
func (m *Mutex) HoldCount(ctx context.Context, owner lease.Owner) (int, error) {
	s, err := m.lock().Query(ctx)
	return s.Count(hold.Owner(owner)), err
}

// Remaining returns how long the lock stays held if it is neither renewed nor released: 0 if nobody
// holds it, lease.NoExpiry if the hold has no end.
func (m *Mutex) Remaining(ctx context.Context) (time.Duration, error) {
	s, err := m.lock().Query(ctx)
	return s.Remaining, err
}

// Holder returns the holder of the lock, or the zero Owner if nobody holds it. If the holder's id
// cannot be parsed as an Owner, the error matches ErrBadArgument.
func (m *Mutex) Holder(ctx context.Context) (lease.Owner, error) {
	owner, err := m.lock().Holder(ctx)
	return lease.Owner(owner), err
}

// ForceRelease takes the lock from its holder and hands it to the next waiter. It reports whether
// anybody held it. Each lease on the lock ends with ErrLost: at once if it is of this Client or
// Notified, otherwise at its next renewal.
//
// The holder's work may still be going on. Call ForceRelease only if you know that it is not.
func (m *Mutex) ForceRelease(ctx context.Context) (bool, error) {
	return m.lock().ForceRelease(ctx)
}

// Ask asks the holder to give the lock up: it closes the channel of Lease.Asked, if the holder listens, and changes
// nothing else. It reports whether anybody held the lock. A holder that begins to listen later is asked too, until the
// time at which the lock would end without another renewal. So is the next holder, if the lock is passed on within its
// process.
func (m *Mutex) Ask(ctx context.Context) (bool, error) { return m.lock().AskHolder(ctx) }
