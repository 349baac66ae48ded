// What a majority has granted, until no majority is left of it.

package multilock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/lease"
)

// hold is a lock on a majority of servers, and the leases that share it: the
// first, and those that re-entered. Each member renews itself, and ends by its
// own deadline; the hold ends with the one without which there is no majority.
type hold struct {
	quorum  *Quorum
	members []*lease.Lease
	token   int64
	granted time.Time

	mu     sync.Mutex
	over   error // why it has ended
	leases map[*QuorumLease]struct{}
}

// begin makes the first lease, and watches the members from then on.
func (h *hold) begin() *QuorumLease {
	h.leases = make(map[*QuorumLease]struct{})
	l := h.add()
	h.quorum.telemetry().Active(kind, 1)
	for _, m := range h.members {
		context.AfterFunc(m.Context(context.Background()), h.look)
	}
	return l
}

// enter adds a lease, on behalf of a context that carries outer.
func (h *hold) enter(outer *QuorumLease) (*QuorumLease, error) {
	h.mu.Lock()
	if _, lasts := h.leases[outer]; lasts {
		defer h.mu.Unlock()
		return h.add(), nil
	}
	h.mu.Unlock()
	return nil, outer.life.wait()
}

// add adds a lease under the mutex.
func (h *hold) add() *QuorumLease {
	l := &QuorumLease{hold: h, life: newLife()}
	h.leases[l] = struct{}{}
	return l
}

// look ends the hold when no majority of the members is held any more.
func (h *hold) look() {
	var cause error
	left := 0
	for _, m := range h.members {
		switch err := m.Err(); {
		case err == nil:
			left++
		case cause == nil || weight(err) > weight(cause):
			cause = errs.Bare(err)
		}
	}
	if left < h.quorum.majority() {
		h.lose(fmt.Errorf("%d of %d left: %w", left, len(h.quorum.members), cause))
	}
}

// weight is how much the end of a member says about the end of the whole: what was meant
// to end it says more than a loss that the others made up for.
func weight(err error) int {
	for i, meant := range []error{errs.Closed, errs.MaxHold, errs.Expired} {
		if errors.Is(err, meant) {
			return 3 - i
		}
	}
	return 0
}

// lose ends the hold and every lease on it.
func (h *hold) lose(cause error) {
	cause = lease.CallError("lease on", kind, h.quorum.name, cause)
	h.mu.Lock()
	if h.over != nil {
		h.mu.Unlock()
		return
	}
	h.over = cause
	leases := h.leases
	h.leases = nil
	h.mu.Unlock()
	for l := range leases {
		l.life.end(cause)
	}
	reason, agreed := telemetry.LostServer, errors.Is(cause, errs.Expired)
	switch {
	case errors.Is(cause, errs.Closed):
		reason = telemetry.LostClosed
	case errors.Is(cause, errs.MaxHold):
		reason = telemetry.LostMaxHold
	default:
		// What is left protects nothing any more, and would only be in the way.
		startRelease(context.Background(), h.members)
	}
	e := h.quorum.members[0].Engine
	e.Report(func() {
		e.Telemetry.Active(kind, -1)
		if agreed {
			e.Telemetry.Expired(kind, time.Since(h.granted))
			return
		}
		e.Telemetry.Lost(kind, reason)
		e.Log.Warn("holdfast: lost", "kind", kind, "name", lease.Quote(h.quorum.name),
			"reason", reason, "held", time.Since(h.granted), "cause", errs.Plain(errs.Bare(cause)))
	})
}

// deadline is when the hold ends if no member is renewed: the first instant at
// which fewer than a majority are valid.
func (h *hold) deadline() time.Time {
	var ends []time.Time
	for _, m := range h.members {
		if end := m.Deadline(); m.Err() == nil {
			ends = append(ends, end)
		}
	}
	if len(ends) < h.quorum.majority() {
		return time.Time{}
	}
	slices.SortFunc(ends, func(a, b time.Time) int { return b.Compare(a) })
	return ends[h.quorum.majority()-1]
}

// release ends one lease, and with the last one frees the lock.
func (h *hold) release(ctx context.Context, l *QuorumLease) (held time.Duration, err error) {
	h.mu.Lock()
	if _, lasts := h.leases[l]; !lasts {
		h.mu.Unlock()
		return telemetry.StillHeld, l.life.wait()
	}
	released := lease.CallError("lease on", kind, h.quorum.name, errs.Released)
	delete(h.leases, l)
	last := len(h.leases) == 0
	if last {
		h.over = released
	}
	h.mu.Unlock()
	l.life.end(released)
	if !last {
		return telemetry.StillHeld, nil
	}
	h.quorum.telemetry().Active(kind, -1)
	if err := h.free(ctx); err != nil {
		return time.Since(h.granted), lease.CallError("release", kind, h.quorum.name, err)
	}
	return time.Since(h.granted), nil
}

// free releases every member. It returns nil when a majority of all servers is
// free: the others, where they do not answer, are tried in the background.
func (h *hold) free(ctx context.Context) error {
	q := h.quorum
	open := len(h.members) // servers of which it is not known that they are free
	answers := q.release(context.WithoutCancel(ctx), h.members, func(err error) bool {
		if err == nil || errors.Is(err, errs.Lost) {
			open--
		}
		return len(q.members)-open >= q.majority()
	})
	gone := 0
	var failed []error
	for _, err := range answers {
		switch {
		case errors.Is(err, errs.Lost):
			gone++
		case err != nil:
			failed = append(failed, err)
		}
	}
	switch {
	case len(h.members)-gone < q.majority():
		return fmt.Errorf("%d of %d were left: %w", len(h.members)-gone, len(q.members), errs.Lost)
	case len(failed) > len(q.members)-q.majority():
		return fmt.Errorf("%d of %d servers not released: %w", len(failed), len(q.members), together(failed))
	}
	return nil
}
