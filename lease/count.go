// How many leases a hold has, as Redis counts them.

package lease

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// recount tells Redis how many leases are on the hold, when one of several was
// released.
func (h *hold) recount(ctx context.Context) error {
	if err := h.take(ctx); err != nil {
		h.correct(0)
		return err
	}
	defer h.give()
	return h.writeCount(ctx)
}

// writeCount is recount for who has the turn.
func (h *hold) writeCount(ctx context.Context) error {
	count := h.countNow()
	if count == 0 {
		return nil // whoever ended the rest sees to it
	}
	call := h.resource.Recount(h.owner(), count, 0)
	if err := h.engine.Conn.Run(ctx, call); err != nil {
		notAfter, _ := call.Outstanding()
		h.correct(notAfter)
		return err
	}
	if call.Status() != Granted && h.countNow() > 0 {
		h.endAll(byLoss, telemetry.LostServer)
		return errs.Lost
	}
	if notAfter, unheard := call.Outstanding(); unheard {
		h.correct(notAfter) // an earlier sending sets an old count when it comes late
	}
	return nil
}

// correct sets the count right in the background, once no request that is still
// on its way can set it wrong again.
func (h *hold) correct(notAfter int64) {
	h.engine.Settle(notAfter, settleLimit(time.Until(h.until())), func(ctx context.Context) (*conn.Call, error) {
		if err := h.take(ctx); err != nil {
			return nil, err
		}
		defer h.give()
		count := h.countNow()
		if count == 0 {
			return nil, nil
		}
		call := h.resource.Recount(h.owner(), count, 0)
		call.Cleanup = true
		return call, h.engine.Conn.Run(ctx, call)
	})
}

func (h *hold) countNow() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int(h.count)
}

// take waits for the turn to change the count in Redis. Counts are set
// absolutely, so two changes at once could arrive in the wrong order.
func (h *hold) take(ctx context.Context) error {
	for {
		h.mu.Lock()
		if !h.changing {
			h.changing = true
			h.mu.Unlock()
			return nil
		}
		if h.changed == nil {
			h.changed = make(chan struct{})
		}
		changed := h.changed
		h.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// give gives the turn back.
func (h *hold) give() {
	h.mu.Lock()
	h.changing = false
	changed := h.changed
	h.changed = nil
	h.mu.Unlock()
	if changed != nil {
		close(changed)
	}
}
