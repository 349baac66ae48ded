// Holds whose holders want to know at once that they were lost. A message is a hint to ask Redis, never a proof.

package hold

import "context"

// Noticed is a Resource whose holders are sent a message when a hold is taken from them by force.
type Noticed interface {
	Resource
	// Notices returns the channel of these messages for this Client.
	Notices() string
}

// watch makes the hold listen, until it ends.
func (h *hold) watch() {
	if r, ok := h.resource.(Noticed); ok {
		h.engine.Watch(h.life(), r.Notices(), 0, h.look)
	}
}

// life returns a context that ends with the hold, and with the Client.
func (h *hold) life() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seldomToWrite()
	if s.life == nil {
		s.life, s.die = context.WithCancel(h.engine.Closing())
		if h.gone { // leave may have come before
			s.die()
		}
	}
	return s.life
}

// look asks Redis at once, by a renewal, whether it has the hold. It ends nothing, whatever becomes of that renewal:
// only the answer does.
func (h *hold) look() {
	h.mu.Lock()
	h.doubt(h.engine.Age())
	h.reschedule()
}

// die ends what listens for the hold: see life.
func (h *hold) die() {
	h.mu.Lock()
	die := func() {}
	if s := h.seldom; s != nil && s.die != nil {
		die = s.die
	}
	h.mu.Unlock()
	die()
}
