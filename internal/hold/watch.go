// Holds whose holders want to know at once that they were lost. A message is a hint to ask Redis, never a proof.

package hold

import "context"

// Noticed is a Resource whose holders are sent a message when a hold is taken from them by force.
type Noticed interface {
	Resource
	// Notices returns the channel of these messages for this Client.
	Notices() string
}

// watch has the hold listen, until it ends.
func (h *hold) watch() {
	r, ok := h.resource.(Noticed)
	if !ok {
		return
	}
	ctx, stop := context.WithCancel(h.engine.Closing())
	h.mu.Lock()
	h.seldomToWrite().unwatch = stop
	gone := h.gone
	h.mu.Unlock()
	if gone { // leave may have come before
		stop()
		return
	}
	h.engine.Watch(ctx, r.Notices(), h.look)
}

// look has Redis asked at once whether it has the hold, by a renewal. It ends nothing, whatever becomes of
// that renewal: only the answer does.
func (h *hold) look() {
	h.mu.Lock()
	h.doubt(h.engine.Age())
	if h.renewing {
		h.seldomToWrite().again = true // what is under way may have been done before
	} else {
		h.renewAt = h.engine.Age()
	}
	h.reschedule()
}

// unwatch ends what watch began.
func (h *hold) unwatch() {
	h.mu.Lock()
	stop := func() {}
	if s := h.seldom; s != nil && s.unwatch != nil {
		stop = s.unwatch
	}
	h.mu.Unlock()
	stop()
}
