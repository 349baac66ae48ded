// Re-entry: one more lease on a hold that exists.

package hold

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// enter adds a lease to the hold for a context that carries outer. The request sets the count in
// Redis to what it will be, so a request that is repeated counts once. It never makes a hold: if
// Redis does not have the hold, the hold is lost.
func (h *hold) enter(ctx context.Context, outer *Lease, a *acquisition) (*Lease, error) {
	if ended := outer.why(); ended != nil {
		return nil, h.carried(ended)
	}
	if err := h.take(ctx); err != nil {
		return nil, err
	}
	defer h.give()

	h.mu.Lock()
	ended := outer.because()
	h.entering = ended == nil
	count := int(h.count) + 1
	h.mu.Unlock()
	if ended != nil {
		return nil, h.carried(ended)
	}

	call := outer.prolonging(h.resource.Recount(h.owner(), count, a.settings.Length))
	call.Replicas = max(call.Replicas, a.settings.Replicas)
	err := h.engine.Conn.Run(ctx, call)
	a.course.attempts, a.grant = call.Attempts, grantOf(call)
	if l, gone := goneBy(err, call.Status() == conn.Done); gone {
		return nil, h.endAll(l)
	}
	if err == nil && call.Short() {
		defer h.correct(0)
		err = call.Shortage()
	}
	if err != nil {
		h.notEntered(call)
		return nil, err
	}
	if notAfter, unheard := call.Outstanding(); unheard {
		h.correct(notAfter) // an earlier sending that comes late sets an old count
	}
	return h.entered(a)
}

// carried returns the error of an entry through a lease that has ended. ended is why that lease
// ended.
func (h *hold) carried(ended error) error {
	return fmt.Errorf("the context carries a lease that has ended: owner %s: %w", h.owner().Short(), ended)
}

// entered adds the lease that was granted. If the hold has ended in the meantime, it returns why.
func (h *hold) entered(a *acquisition) (*Lease, error) {
	h.mu.Lock()
	h.entering = false
	if h.gone {
		lost := h.because(h.lost())
		h.mu.Unlock()
		h.prolongedTooLate(a.grant.until)
		return nil, lost
	}
	if h.seldom != nil {
		h.seldom.kept = nil // it goes on
	}
	l := h.add(new(Lease), a)
	h.prolonged(a.grant.until)
	h.reschedule()
	return l, nil
}

// notEntered undoes what a failed entry may have done: it sets the count right. If the last lease has ended in the
// meantime, the hold ends with the entry: if that lease has been released, the hold is given up, and the Release
// waits for this (see goOn); else it ends as it would have ended without the entry.
func (h *hold) notEntered(call *conn.Call) {
	notAfter, unheard := call.Outstanding()
	h.mu.Lock()
	h.entering = false
	h.endCohort() // it may have prolonged the hold
	over := h.count == 0 && !h.gone
	h.gone = h.gone || over
	lost := over && h.seldom != nil && len(h.seldom.kept) > 0
	if lost {
		now := time.Now()
		h.lose(h.lossBy(h.seldom.kept, now), now)
	}
	h.mu.Unlock()
	switch {
	case lost:
		h.announce(nil, true)
	case over:
		giveUpSeat(h.engine, h.resource, h.leave(), 0)
		h.active(-1)
		h.settle(notAfter)
	case unheard:
		h.correct(notAfter)
	}
}
