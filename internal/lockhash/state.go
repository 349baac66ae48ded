// The state of a lock in Redis, and its release by force.

package lockhash

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
)

// NoExpiry is the Remaining of a lock that Redis holds without an expiry.
const NoExpiry time.Duration = -1

// State is what Redis says about a lock.
type State struct {
	Locked    bool
	Remaining time.Duration // 0 if it is not locked
	Holders   []Holder
}

// Holder is one field of the hash.
type Holder struct {
	ID    string // the id of an Owner, or what another program has put there
	Count int    // 0 if it is not a number
}

// foreign returns a field that no Mutex has, neither Holdfast's nor Redisson's, if there is one. A
// holder's field is <client>:<number>, with a count.
func (s State) foreign() (field string, found bool) {
	for _, h := range s.Holders {
		at := strings.LastIndexByte(h.ID, ':')
		_, err := strconv.ParseInt(h.ID[at+1:], 10, 64)
		if at < 1 || err != nil || h.Count < 1 {
			return h.ID, true
		}
	}
	return "", false
}

// cut returns as much of an application's own field as an error shows: 32 bytes.
func cut(field string) string { return field[:min(len(field), 32)] }

// ParseState returns the answer to a call that State made.
func ParseState(call *conn.Call) State {
	var s State
	switch ttl := call.Int(2); ttl {
	case -2:
		return s
	case -1:
		s.Remaining = NoExpiry
	default:
		s.Remaining = time.Duration(ttl) * time.Millisecond
	}
	s.Locked = true
	for i := 3; i+1 < call.Reply.Len(); i += 2 {
		s.Holders = append(s.Holders, Holder{ID: call.Text(i), Count: Count(call.Text(i + 1))})
	}
	return s
}

// Count returns how many leases the count of a holder stands for. The count of a holder that was
// handed the lock is 0 until it has asked for its whole lease, or has been entered again; that
// stands for one lease.
func Count(text string) int {
	if text == "0" {
		return 1
	}
	count, _ := strconv.Atoi(text)
	return count
}

// Count returns how many leases that owner has on the lock.
func (s State) Count(owner lease.Owner) int {
	for _, h := range s.Holders {
		if h.ID == owner.String() {
			return h.Count
		}
	}
	return 0
}

// Holder returns the holder of the lock, or the zero Owner.
func (s State) Holder() (lease.Owner, error) {
	if len(s.Holders) == 0 {
		return lease.Owner{}, nil
	}
	return lease.ParseOwner(s.Holders[0].ID)
}

// Query asks Redis for the state.
func (h Hash) Query(ctx context.Context, e *engine.Engine) (State, error) {
	call := h.State()
	if err := e.Conn.Run(ctx, call); err != nil {
		return State{}, err
	}
	return ParseState(call), nil
}

// ForceRelease takes the lock from its holder, by the lock's own release, and ends the leases of
// this Client on it. It reports whether anybody held it. If the hash has a field that is not a
// holder, it is no lock: ForceRelease leaves it as it is, and the error matches errs.WrongType.
func (h Hash) ForceRelease(ctx context.Context, e *engine.Engine, release func(holder, publish string) *conn.Call) (bool, error) {
	s, err := h.Query(ctx, e)
	if err != nil || !s.Locked {
		return false, err
	}
	if field, found := s.foreign(); found {
		return false, fmt.Errorf("%w: a hash stands there, and its field %q is not a holder's", errs.WrongType, cut(field))
	}
	publish, err := e.Conn.PublishCommand(ctx)
	if err != nil {
		return false, err
	}
	for _, holder := range s.Holders {
		// By its id: if the reply is lost and the call is sent again, a holder that got the lock in
		// the meantime keeps it.
		if err := e.Conn.Run(ctx, release(holder.ID, publish)); err != nil {
			return false, err
		}
		e.EndHeld(h.Key(), holder.ID, errs.Lost)
	}
	return true, nil
}
