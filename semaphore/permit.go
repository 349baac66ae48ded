// One leased permit, by its id.

package semaphore

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// IDs returns the ids of the permits that the lease l has. Each id has 32 hexadecimal digits, as in
// Redisson. If l is not a lease of a PermitSemaphore, IDs returns nil.
func (s *PermitSemaphore) IDs(l *lease.Lease) []string {
	r, ok := (*hold.Lease)(l).Resource().(*resource)
	if !ok {
		return nil
	}
	ids := make([]string, r.n)
	for i := range ids {
		ids[i] = hex.EncodeToString(id(hold.Owner(l.Owner()), i))
	}
	return ids
}

// ReleaseID gives back the permit with the given id. It does not matter whether this process, another
// process or Redisson has taken the permit. If nobody has taken a permit with this id, or if the lease of
// the permit is over, the error matches ErrNoPermits. If the permit belongs to a Lease of a Go program,
// that Lease is lost at its next renewal. To give back your own Lease, call its Release instead of
// ReleaseID.
func (s *PermitSemaphore) ReleaseID(ctx context.Context, id string) error {
	s = engine.Made(s)
	raw, err := parseID(id)
	if err != nil {
		return s.fail("release", err)
	}
	call := release(s.at, []any{s.publish(ctx), s.at.Channel, raw})
	err = s.run(ctx, call)
	_, unheard := call.Outstanding() // an earlier sending may have done it
	if err == nil && call.Status() != conn.Done && !unheard {
		err = missing(id)
	}
	if err != nil {
		return s.fail("release", err)
	}
	return nil
}

// UpdateLease makes the lease of one permit end d from now. id is the id of that permit. The new end may
// be earlier or later than the old end. If nobody has taken a permit with this id, or if the lease of the
// permit is over, the error matches ErrNoPermits.
//
// UpdateLease is for operators, and for permits that Redisson has taken. A Go program prolongs its own
// Lease by Lease.Extend. If UpdateLease shortens the Lease of a Go program, the Go program notices that
// only when it next renews the Lease.
func (s *PermitSemaphore) UpdateLease(ctx context.Context, id string, d time.Duration) error {
	s = engine.Made(s)
	raw, err := parseID(id)
	if err == nil && d < lease.MinLease {
		err = fmt.Errorf("a lease of %v is shorter than %v: %w", d, lease.MinLease, errs.BadArgument)
	}
	if err == nil {
		err = s.ask(ctx, id, &conn.Call{
			Script: updateScript,
			Keys:   []string{s.at.Taken},
			Args:   []any{d.Milliseconds(), raw},
		})
	}
	if err != nil {
		return s.fail("update", err)
	}
	return nil
}

// Remaining returns how long the permit with the given id stays taken if nobody renews or releases it. If
// the permit is taken for ever, Remaining returns lease.NoExpiry. If nobody has taken a permit with this
// id, or if the lease of the permit is over, the error matches ErrNoPermits.
func (s *PermitSemaphore) Remaining(ctx context.Context, id string) (time.Duration, error) {
	s = engine.Made(s)
	raw, err := parseID(id)
	call := &conn.Call{Script: lookScript, Keys: []string{s.at.Taken}, Args: []any{raw}}
	if err == nil {
		err = s.ask(ctx, id, call)
	}
	if err != nil {
		return 0, s.fail("query", err)
	}
	return hold.Remaining(engine.TTL(call)), nil
}

// ask runs a call on one permit. If that permit is not taken, the error matches ErrNoPermits.
func (s *PermitSemaphore) ask(ctx context.Context, id string, call *conn.Call) error {
	err := s.run(ctx, call)
	if err == nil && call.Status() != conn.Done {
		return missing(id)
	}
	return err
}

// publish returns the command that publishes; "" if the semaphore cannot be used.
func (s *PermitSemaphore) publish(ctx context.Context) string {
	if s.usable() != nil {
		return ""
	}
	return s.engine.Publish(ctx)
}

// parseID returns the bytes of an id.
func parseID(id string) (string, error) {
	raw, err := hex.DecodeString(id)
	if err != nil || len(raw) != idSize {
		return "", fmt.Errorf("a permit's id of %d bytes: want %d hexadecimal digits: %w", len(id), 2*idSize, errs.BadArgument)
	}
	return string(raw), nil
}

func missing(id string) error {
	return fmt.Errorf("permit %s is not taken: %w", id, errs.NoPermits)
}
