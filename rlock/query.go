// Questions about the lock, and taking it by force.

package rlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/lockhash"
	"github.com/holdfast-go/holdfast/lease"
)

// NoExpiry is what Remaining returns for a lock that Redis holds without an
// expiry. Holdfast never makes one.
const NoExpiry = lockhash.NoExpiry

// Locked reports whether anybody holds the lock. All queries ask the master.
func (m *Mutex) Locked(ctx context.Context) (bool, error) {
	s, err := m.state(ctx, "query")
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
	s, err := m.state(ctx, "query")
	if err != nil {
		return 0, err
	}
	return s.Count(owner), nil
}

// Remaining returns how long the lock stays held if it is neither renewed nor
// released: 0 if nobody holds it, NoExpiry if that has no end.
func (m *Mutex) Remaining(ctx context.Context) (time.Duration, error) {
	s, err := m.state(ctx, "query")
	return s.Remaining, err
}

// Holder returns who holds the lock; the zero Owner if nobody does. A holder
// whose id is no Owner's gives an error that matches ErrBadArgument.
func (m *Mutex) Holder(ctx context.Context) (lease.Owner, error) {
	s, err := m.state(ctx, "query")
	if err != nil {
		return lease.Owner{}, err
	}
	return s.Holder()
}

// ForceRelease takes the lock from whoever holds it and tells the waiters. It
// reports whether anybody held it. Leases of this Client on the lock end at
// once, those of others with their next renewal; in both cases with ErrLost. A hash
// of an application's own, with fields that are no holders, is left as it is: the
// error matches ErrWrongType.
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

func (m *Mutex) state(ctx context.Context, op string) (lockhash.State, error) {
	if m.err != nil {
		return lockhash.State{}, m.fail(op, m.err)
	}
	s, err := m.resource.Query(ctx, m.resource.Engine)
	if err != nil {
		return lockhash.State{}, m.fail(op, err)
	}
	return s, nil
}
