// Re-entry: one more lease on a hold that is there.

package lease

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// enter adds a lease to the hold, on behalf of a context that carries outer. The
// count in Redis is set to what it will be, so that a repeated request counts
// once. It never makes a hold: one that Redis does not have is lost.
func (h *hold) enter(ctx context.Context, outer *Lease, a *acquisition) (*Lease, error) {
	if ended := outer.cause(); ended != nil {
		return nil, outer.error(ended)
	}
	if err := h.take(ctx); err != nil {
		return nil, err
	}
	defer h.give()

	h.mu.Lock()
	ended := outer.ended
	h.entering = ended == notYet
	count := int(h.count) + 1
	h.mu.Unlock()
	if ended != notYet {
		return nil, outer.error(ended.err())
	}

	call := h.prolonging(h.resource.Recount(h.owner(), count, a.settings.length))
	err := h.engine.Conn.Run(ctx, call)
	a.course.attempts, a.grant = call.Attempts, grantOf(call)
	switch {
	case err != nil:
		h.notEntered(call)
		return nil, err
	case call.Status() != Granted:
		h.endAll(byLoss, telemetry.LostServer)
		return nil, errs.Lost
	}
	if call.Short() {
		h.notEntered(call)
		h.correct(0)
		return nil, call.Shortage()
	}
	if notAfter, unheard := call.Outstanding(); unheard {
		h.correct(notAfter) // an earlier sending sets an old count when it comes late
	}
	return h.entered(a)
}

// entered adds the lease that was granted.
func (h *hold) entered(a *acquisition) (*Lease, error) {
	h.mu.Lock()
	h.entering = false
	if h.gone {
		lost := h.lost
		h.mu.Unlock()
		h.prolongedTooLate(a.grant.until)
		return nil, lost.err()
	}
	l := h.add(new(Lease), a)
	h.prolonged(a.grant.until)
	h.reschedule()
	return l, nil
}

// notEntered undoes what an entry that failed may have done: the count is set
// right. If the last lease was released meanwhile, the hold ends with the entry,
// and whoever released that lease waits for it.
func (h *hold) notEntered(call *conn.Call) {
	notAfter, unheard := call.Outstanding()
	h.mu.Lock()
	h.entering = false
	over := h.count == 0 && !h.gone
	h.gone = h.gone || over
	h.mu.Unlock()
	switch {
	case over:
		giveUpSeat(h.engine, h.resource, h.leave())
		h.engine.Telemetry.Active(h.resource.Kind(), -1)
		h.settle(notAfter)
	case unheard:
		h.correct(notAfter)
	}
}
