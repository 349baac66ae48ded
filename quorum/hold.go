// The hold of a Quorum: from the grant by a majority until no majority is left.

package quorum

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/lease"
)

// majorityHold is a lock on a majority of servers, and the leases that share it: the first, and those that
// re-entered. Each member is renewed alone, and ends by its own deadline. The hold ends with
// the member without which there is no majority.
type majorityHold struct {
	quorum  *Quorum
	members []*lease.Lease
	token   int64
	granted time.Time
	kind    telemetry.Kind // what is measured of it

	mu     sync.Mutex
	over   error // why it has ended
	leases map[*Lease]struct{}
	// kept are the leases that ended with the hold and are not released yet. Their members were
	// left in Redis, since work may be going on under them.
	kept map[*Lease]struct{}
}

// begin makes the first lease, and watches the members from then on.
func (h *majorityHold) begin() *Lease {
	h.leases = make(map[*Lease]struct{})
	l := h.add()
	h.quorum.telemetry().Active(h.kind, 1)
	for _, m := range h.members {
		context.AfterFunc(m.Context(context.Background()), h.endWithoutMajority)
	}
	return l
}

// enter adds a lease, for a context that carries outer. If outer has ended, it returns why.
func (h *majorityHold) enter(outer *Lease) (*Lease, error) {
	h.mu.Lock()
	if _, lasts := h.leases[outer]; lasts {
		defer h.mu.Unlock()
		return h.add(), nil
	}
	h.mu.Unlock()
	return nil, outer.life.wait()
}

// add adds a lease. Its caller holds the mutex, or is the only one that knows the hold.
func (h *majorityHold) add() *Lease {
	l := &Lease{hold: h, life: newLife()}
	h.leases[l] = struct{}{}
	return l
}

// parts returns the leases on the servers, as package hold knows them.
func (h *majorityHold) parts() []*hold.Lease {
	parts := make([]*hold.Lease, len(h.members))
	for i, m := range h.members {
		parts[i] = (*hold.Lease)(m)
	}
	return parts
}

// endWithoutMajority ends the hold if fewer than a majority of its members are still held.
func (h *majorityHold) endWithoutMajority() {
	ends := make([]error, len(h.members))
	for i, m := range h.members {
		ends[i] = m.Err()
	}
	ended := func(how error) int { return count(ends, func(err error) bool { return errors.Is(err, how) }) }
	left, majority := ended(nil), h.quorum.majority()
	if left >= majority {
		return
	}
	// Members that this process has ended are the cause only if they alone cost the majority.
	cause := errs.Lost
	closed, tooLong := ended(errs.Closed), ended(errs.MaxHold)
	switch all := len(h.members); {
	case all-closed < majority:
		cause = errs.Closed
	case all-tooLong < majority:
		cause = errs.MaxHold
	case all-closed-tooLong < majority:
		cause = errs.Closed
	case left+ended(errs.Expired) >= majority:
		cause = errs.Expired
	}
	h.lose(fmt.Errorf("%d of %d left: %w", left, len(h.quorum.members), h.endOf(cause)))
}

// endOf returns the error of a member that ended as how says, without the words that name the
// member; how itself if there is none.
func (h *majorityHold) endOf(how error) error {
	for _, m := range h.members {
		//nolint:errorlint // Expired matches Lost, and is not meant
		if err := m.Err(); errors.Is(err, how) && (how != errs.Lost || !errors.Is(err, errs.Expired)) {
			return errs.Bare(err)
		}
	}
	return how
}

// lose ends the hold and every lease on it.
func (h *majorityHold) lose(cause error) {
	reason, agreed := telemetry.LostServer, errors.Is(cause, errs.Expired)
	switch {
	case errors.Is(cause, errs.Closed):
		reason = telemetry.LostClosed
	case errors.Is(cause, errs.MaxHold):
		reason = telemetry.LostMaxHold
	}
	cause = errs.Call("lease on", kind, h.quorum.name, cause)
	h.mu.Lock()
	if h.over != nil {
		h.mu.Unlock()
		return
	}
	h.over = cause
	leases := h.leases
	h.leases = nil
	kept := reason != telemetry.LostServer || (*hold.Lease)(h.members[0]).Grace() > 0
	if kept {
		h.kept = maps.Clone(leases)
	}
	h.mu.Unlock()
	for l := range leases {
		l.life.end(cause)
	}
	if !kept {
		// The members that are left protect nothing any more, and would only be in the way.
		abandon(context.Background(), h.members)
	} else {
		h.retire()
	}
	e := h.quorum.members[0].Engine
	if agreed {
		e.CountExpired(h.kind, time.Since(h.granted))
		return
	}
	e.CountLost(h.kind, reason)
	if reason != telemetry.LostClosed {
		e.Log.Warn("holdfast: lost", "kind", kind, "name", engine.LogName(h.quorum.name),
			"reason", reason, "held", engine.LogTime(time.Since(h.granted)), "cause", errs.Plain(errs.Bare(cause)))
	}
}

// retire stops the renewal of every member. The members of Clients that are still open would
// otherwise be renewed for as long as their process lives.
func (h *majorityHold) retire() {
	for _, m := range h.members {
		(*hold.Lease)(m).Retire()
	}
}

// forgo gives back the members that were left in Redis when the hold ended, once the last of its
// leases is released.
func (h *majorityHold) forgo(l *Lease) {
	h.mu.Lock()
	_, kept := h.kept[l]
	delete(h.kept, l)
	last := kept && len(h.kept) == 0
	h.mu.Unlock()
	if last {
		abandon(context.Background(), h.members)
	}
}

// deadline returns when the hold ends if no member is renewed: the first instant at which fewer
// than a majority are valid. It returns the zero time if that is so already.
func (h *majorityHold) deadline() time.Time {
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

// release ends one lease. With the last lease it frees the lock.
func (h *majorityHold) release(ctx context.Context, l *Lease) (held time.Duration, err error) {
	h.mu.Lock()
	if _, lasts := h.leases[l]; !lasts {
		h.mu.Unlock()
		h.forgo(l)
		return telemetry.StillHeld, l.life.wait()
	}
	released := errs.Call("lease on", kind, h.quorum.name, errs.Released)
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
	h.quorum.telemetry().Active(h.kind, -1)
	if err := h.free(ctx); err != nil {
		return time.Since(h.granted), errs.Call("release", kind, h.quorum.name, err)
	}
	return time.Since(h.granted), nil
}

// free releases every member. It returns nil when a majority of all servers is free. Servers that
// have not answered by then are asked further in the background.
func (h *majorityHold) free(ctx context.Context) error {
	q := h.quorum
	others := len(q.members) - len(h.members) // servers that the hold is not on
	answers := q.release(context.WithoutCancel(ctx), h.members, func(come []error) bool {
		return others+count(come, isFree) >= q.majority()
	})
	gone := 0
	var failed []error
	for _, err := range answers {
		switch {
		case errors.Is(err, errs.Lost):
			gone++
		case err != nil:
			failed = append(failed, errs.Bare(err)) // the caller says what was done to which lock
		}
	}
	switch {
	case len(h.members)-gone < q.majority():
		return fmt.Errorf("%d of %d were left: %w", len(h.members)-gone, len(q.members), errs.Lost)
	case len(failed) > len(q.members)-q.majority():
		return fmt.Errorf("%d of %d servers not released: %w", len(failed), len(q.members), errs.InOneLine(failed))
	}
	return nil
}

// isFree reports whether the answer of a release says that its server is free.
func isFree(released error) bool { return released == nil || errors.Is(released, errs.Lost) }
