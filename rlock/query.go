// Queries about the lock, and its release by force.

package rlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// Locked reports whether anybody holds the lock. Like all queries, it asks the master.
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

// ForceRelease takes the lock from its holder and notifies the waiters. It reports whether anybody held it. Each
// lease on the lock ends with ErrLost: at once if it is of this Client or Notified, otherwise at its next renewal.
// If an application's own hash is at the key, with fields that are not holders, ForceRelease leaves it as it is,
// and the error matches ErrWrongType.
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
