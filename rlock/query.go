package rlock

import (
	"context"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
)

// NoExpiry is what Remaining returns for a lock that Redis holds without an
// expiry. Holdfast never makes one.
const NoExpiry time.Duration = -1

// Locked reports whether anybody holds the lock. All queries ask the master.
func (m *Mutex) Locked(ctx context.Context) (bool, error) {
	s, err := m.state(ctx, "query")
	return s.locked, err
}

// HeldBy reports whether that owner, of this process or another, holds the lock.
func (m *Mutex) HeldBy(ctx context.Context, owner lease.Owner) (bool, error) {
	count, err := m.HoldCount(ctx, owner)
	return count > 0, err
}

// HoldCount returns how many leases that owner, of this process or another, has
// on the lock; 0 if it does not hold it.
func (m *Mutex) HoldCount(ctx context.Context, owner lease.Owner) (int, error) {
	s, err := m.state(ctx, "query")
	if err != nil {
		return 0, err
	}
	for _, h := range s.holders {
		if h.id == owner.String() {
			return h.count, nil
		}
	}
	return 0, nil
}

// Remaining returns how long the lock stays held if it is neither renewed nor
// released: 0 if nobody holds it, NoExpiry if that has no end.
func (m *Mutex) Remaining(ctx context.Context) (time.Duration, error) {
	s, err := m.state(ctx, "query")
	return s.remaining, err
}

// Holder returns who holds the lock; the zero Owner if nobody does. A holder
// whose id is no Owner's gives an error that matches ErrBadArgument.
func (m *Mutex) Holder(ctx context.Context) (lease.Owner, error) {
	s, err := m.state(ctx, "query")
	if err != nil || len(s.holders) == 0 {
		return lease.Owner{}, err
	}
	return lease.ParseOwner(s.holders[0].id)
}

// ForceRelease takes the lock from whoever holds it and tells the waiters. It
// reports whether anybody held it. Leases of this Client on the lock end at
// once, those of others with their next renewal; in both cases with ErrLost.
//
// Work of the holder may still be going on: this is for people who know that it
// is not.
func (m *Mutex) ForceRelease(ctx context.Context) (bool, error) {
	s, err := m.state(ctx, "force release")
	if err != nil || !s.locked {
		return false, err
	}
	publish, err := m.engine.Conn.PublishCommand(ctx)
	if err != nil {
		return false, m.fail("force release", err)
	}
	for _, h := range s.holders {
		// By its id: if the reply is lost and the call sent again, whoever got
		// the lock meanwhile keeps it.
		if err := m.engine.Conn.Run(ctx, m.resource.release(h.id, publish)); err != nil {
			return false, m.fail("force release", err)
		}
		m.engine.EndHeld(m.resource.Key(), h.id, errs.Lost)
	}
	return true, nil
}

// state is what Redis says of the lock.
type state struct {
	locked    bool
	remaining time.Duration
	holders   []holder
}

type holder struct {
	id    string
	count int
}

func (m *Mutex) state(ctx context.Context, op string) (state, error) {
	if m.err != nil {
		return state{}, m.fail(op, m.err)
	}
	call := m.resource.call(stateScript)
	if err := m.engine.Conn.Run(ctx, call); err != nil {
		return state{}, m.fail(op, err)
	}
	return parseState(call), nil
}

func parseState(call *conn.Call) state {
	var s state
	switch ttl := call.Int(2); ttl {
	case -2:
		return s
	case -1:
		s.remaining = NoExpiry
	default:
		s.remaining = time.Duration(ttl) * time.Millisecond
	}
	s.locked = true
	for i := 3; i+1 < len(call.Reply); i += 2 {
		count, _ := strconv.Atoi(call.Text(i + 1))
		s.holders = append(s.holders, holder{id: call.Text(i), count: count})
	}
	return s
}
