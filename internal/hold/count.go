// How many leases a hold has, as Redis counts them.

package hold

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// recount sets the count in Redis to how many leases are on the hold. The caller has the turn.
func (h *hold) recount(ctx context.Context) error {
	count := h.countNow()
	if count == 0 {
		return nil // the call that ended the last lease sees to the rest
	}
	call := h.resource.Recount(h.owner(), count, 0)
	err := h.engine.Conn.Run(ctx, call)
	if l, gone := goneBy(err, call.Status() == conn.Done); gone && (err != nil || h.countNow() > 0) {
		return h.endAll(l)
	}
	if notAfter, unheard := call.Outstanding(); unheard || err != nil {
		h.correct(notAfter) // an earlier sending that comes late sets an old count
	}
	return err
}

// correct sets the count right in the background. It goes on until no late request can set the
// count wrong again.
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

// take waits for the turn to change the count in Redis. Requests set the count absolutely, so two
// changes at once could arrive in the wrong order.
func (h *hold) take(ctx context.Context) error {
	for {
		h.mu.Lock()
		if !h.changing {
			h.changing = true
			h.mu.Unlock()
			return nil
		}
		s := h.seldomToWrite()
		if s.changed == nil {
			s.changed = make(chan struct{})
		}
		changed := s.changed
		h.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (h *hold) give() {
	h.mu.Lock()
	h.changing = false
	var changed chan struct{}
	if h.seldom != nil {
		changed, h.seldom.changed = h.seldom.changed, nil
	}
	h.mu.Unlock()
	if changed != nil {
		close(changed)
	}
}
