package rwlock

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
)

// NoExpiry is what Remaining returns for a lock that Redis holds without an
// expiry. Holdfast never makes one.
const NoExpiry time.Duration = -1

// Locked reports whether a writer holds the lock. All queries ask the master.
func (m *RWMutex) Locked(ctx context.Context) (bool, error) {
	s, err := m.state(ctx, "query")
	return len(s.writers) > 0, err
}

// RLocked reports whether a reader holds the lock, also one under a write lock
// of its own. Readers whose lease is over do not count, even if Redis still
// lists them.
func (m *RWMutex) RLocked(ctx context.Context) (bool, error) {
	s, err := m.state(ctx, "query")
	return len(s.readers) > 0, err
}

// ReadHolds returns how many leases all readers together have on the lock.
func (m *RWMutex) ReadHolds(ctx context.Context) (int, error) {
	s, err := m.state(ctx, "query")
	holds := 0
	for _, r := range s.readers {
		holds += r.count
	}
	return holds, err
}

// HeldBy reports whether that owner, of this process or another, is the writer.
func (m *RWMutex) HeldBy(ctx context.Context, owner lease.Owner) (bool, error) {
	count, err := m.HoldCount(ctx, owner)
	return count > 0, err
}

// RHeldBy reports whether that owner, of this process or another, is a reader.
func (m *RWMutex) RHeldBy(ctx context.Context, owner lease.Owner) (bool, error) {
	count, err := m.RHoldCount(ctx, owner)
	return count > 0, err
}

// HoldCount returns how many leases that owner has as the writer; 0 if it is
// not.
func (m *RWMutex) HoldCount(ctx context.Context, owner lease.Owner) (int, error) {
	s, err := m.state(ctx, "query")
	return count(s.writers, owner), err
}

// RHoldCount returns how many leases that owner has as a reader; 0 if it is none.
func (m *RWMutex) RHoldCount(ctx context.Context, owner lease.Owner) (int, error) {
	s, err := m.state(ctx, "query")
	return count(s.readers, owner), err
}

// Holder returns who holds the lock as its writer; the zero Owner if nobody
// does. A holder whose id is no Owner's gives an error that matches
// ErrBadArgument.
func (m *RWMutex) Holder(ctx context.Context) (lease.Owner, error) {
	s, err := m.state(ctx, "query")
	if err != nil || len(s.writers) == 0 {
		return lease.Owner{}, err
	}
	return lease.ParseOwner(s.writers[0].id)
}

// RHolders returns who holds the lock as readers, in no order. A holder whose id
// is no Owner's gives an error that matches ErrBadArgument.
func (m *RWMutex) RHolders(ctx context.Context) ([]lease.Owner, error) {
	s, err := m.state(ctx, "query")
	if err != nil {
		return nil, err
	}
	var all []lease.Owner
	for _, r := range s.readers {
		owner, err := lease.ParseOwner(r.id)
		if err != nil {
			return nil, err
		}
		all = append(all, owner)
	}
	return all, nil
}

// Remaining returns how long the lock stays held if nobody renews or releases:
// 0 if nobody holds it, NoExpiry if that has no end.
func (m *RWMutex) Remaining(ctx context.Context) (time.Duration, error) {
	s, err := m.state(ctx, "query")
	return s.remaining, err
}

// ForceRelease takes the lock from its writer, whoever that is, and tells the
// waiters; readers that are in stay in. It reports whether there was a writer.
// Its leases end at once if they are of this Client, otherwise with their next
// renewal; in both cases with ErrLost.
//
// Work of the holder may still be going on: this is for people who know that it
// is not.
func (m *RWMutex) ForceRelease(ctx context.Context) (bool, error) {
	s, err := m.state(ctx, "force release")
	if err != nil {
		return false, err
	}
	return m.force(ctx, m.writing(), releaseScript, s.writers)
}

// RForceRelease takes the lock from all its readers of this moment; a writer
// that is in stays in. It reports whether there was a reader. Otherwise it is as
// ForceRelease.
func (m *RWMutex) RForceRelease(ctx context.Context) (bool, error) {
	s, err := m.state(ctx, "force release")
	if err != nil {
		return false, err
	}
	return m.force(ctx, m.reading(), rreleaseScript, s.readers)
}

// force releases holders by their ids: if a reply is lost and the call sent
// again, whoever got the lock meanwhile keeps it.
func (m *RWMutex) force(ctx context.Context, side lease.Resource, release *conn.Script, holders []holder) (bool, error) {
	if len(holders) == 0 {
		return false, nil
	}
	publish, err := m.engine.Conn.PublishCommand(ctx)
	if err != nil {
		return false, lease.OpError("force release", side, err)
	}
	for _, h := range holders {
		if err := m.engine.Conn.Run(ctx, m.place.release(release, h.id, publish)); err != nil {
			return false, lease.OpError("force release", side, err)
		}
		m.engine.EndHeld(m.place.Key(), h.id, errs.Lost)
	}
	return true, nil
}

// state is what Redis says of the lock.
type state struct {
	remaining time.Duration
	writers   []holder // one at the most
	readers   []holder // those whose lease is not over
}

type holder struct {
	id    string
	count int
}

func (m *RWMutex) state(ctx context.Context, op string) (state, error) {
	if m.err != nil {
		return state{}, m.fail(op, m.err)
	}
	call := m.place.call(stateScript, m.place.at.Timeouts)
	if err := m.engine.Conn.Run(ctx, call); err != nil {
		return state{}, m.fail(op, err)
	}
	return parseState(call), nil
}

func parseState(call *conn.Call) state {
	var s state
	if call.Text(3) == "" {
		return s // nobody, or a lock of another kind
	}
	for i := 4; i+2 < call.Reply.Len(); i += 3 {
		count, _ := strconv.Atoi(call.Text(i + 1))
		left := call.Int(i + 2)
		if left == -2 {
			continue
		}
		if id, ok := strings.CutSuffix(call.Text(i), ":write"); ok {
			s.writers = append(s.writers, holder{id, count})
		} else {
			s.readers = append(s.readers, holder{id, count})
		}
		s.remaining = longer(s.remaining, left)
	}
	return s
}

// longer returns the longer of a time and one that Redis gave in ms.
func longer(d time.Duration, ms int64) time.Duration {
	if ms < 0 || d == NoExpiry {
		return NoExpiry
	}
	return max(d, time.Duration(ms)*time.Millisecond)
}

func count(holders []holder, owner lease.Owner) int {
	for _, h := range holders {
		if h.id == owner.String() {
			return h.count
		}
	}
	return 0
}
