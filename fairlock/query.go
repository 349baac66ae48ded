// Queries about the lock and its queue, and its release by force.

package fairlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// QueueLength returns the number of waiters for the lock, in all processes. Like all queries, it asks the
// master.
func (m *Mutex) QueueLength(ctx context.Context) (int, error) {
	call, err := m.look(ctx, m.lock().look(placeScript, ""))
	if err != nil {
		return 0, err
	}
	waiting, _, _ := placeIn(call)
	return waiting, nil
}

// Position returns how many waiters are before owner in the queue, and whether owner waits at all. owner
// may belong to this process or to another. For the waiter that is next, ahead is 0. If the process of a
// waiter has died, the waiter counts until it is passed over.
func (m *Mutex) Position(ctx context.Context, owner lease.Owner) (ahead int, waits bool, err error) {
	call, err := m.look(ctx, m.lock().look(placeScript, owner.String()))
	if err != nil {
		return 0, false, err
	}
	_, ahead, waits = placeIn(call)
	return ahead, waits, nil
}

// Waiters returns the waiters for the lock, in all processes. The first one is the next to get the lock.
//
// Waiters asks Redis for 256 waiters at a time, so that Redis can serve other requests in between. A waiter
// that waits during the whole call is in the list once, in order. A waiter that comes or goes during the
// call may be in the list or not.
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

// Locked reports whether anybody holds the lock. If the lock was handed to a waiter, that waiter already
// holds it.
func (m *Mutex) Locked(ctx context.Context) (bool, error) {
	s, err := m.lock().Query(ctx)
	return s.Locked, err
}

// HeldBy reports whether owner holds the lock. owner may belong to this process or to another.
func (m *Mutex) HeldBy(ctx context.Context, owner lease.Owner) (bool, error) {
	count, err := m.HoldCount(ctx, owner)
	return count > 0, err
}

// HoldCount returns how many leases owner has on the lock, as Redis counts them. It returns 0 if owner does
// not hold the lock. owner may belong to this process or to another. If Redis did not answer the request of
// a nested Lock or of a Release, the count may be wrong by one for up to a second, because that request can
// still arrive. After that second, Holdfast corrects the count.
func (m *Mutex) HoldCount(ctx context.Context, owner lease.Owner) (int, error) {
	s, err := m.lock().Query(ctx)
	return s.Count(hold.Owner(owner)), err
}

// Remaining returns how long the lock stays held if nobody renews or releases it. It returns 0 if nobody
// holds the lock, and lease.NoExpiry if the hold has no end.
func (m *Mutex) Remaining(ctx context.Context) (time.Duration, error) {
	s, err := m.lock().Query(ctx)
	return s.Remaining, err
}

// Holder returns the holder of the lock, or the zero Owner if nobody holds the lock. If the holder's id
// cannot be parsed as an Owner, the error matches ErrBadArgument.
func (m *Mutex) Holder(ctx context.Context) (lease.Owner, error) {
	owner, err := m.lock().Holder(ctx)
	return lease.Owner(owner), err
}

// ForceRelease takes the lock away from its holder and hands it to the next waiter. If from names owners,
// and the holder is another, for example because the lock has changed hands since Holder or Inspect,
// ForceRelease changes nothing. Without owners, it takes the lock from whoever holds it. It reports whether
// it found such a holder. Each lease on the lock ends with ErrLost: at once if the lease is of this Client
// or has the option Notified, otherwise at its next renewal.
//
// The holder's work may still be going on. Call ForceRelease only if you know that the work has stopped.
func (m *Mutex) ForceRelease(ctx context.Context, from ...lease.Owner) (bool, error) {
	return m.lock().ForceRelease(ctx, hold.Among(from))
}

// Ask asks the holder to give up the lock: if the holder has called Lease.Asked, Ask closes the channel
// that Lease.Asked returned. Ask changes nothing else. It reports whether anybody held the lock. Redis
// remembers the Ask until the time at which the lock would end without another renewal. A holder that calls
// Lease.Asked in that time is asked too. If the lock is passed on within its process in that time, the next
// holder is also asked.
func (m *Mutex) Ask(ctx context.Context) (bool, error) { return m.lock().AskHolder(ctx) }
