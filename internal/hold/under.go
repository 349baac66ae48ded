// A hold under which other holds were granted. They keep it in Redis beyond the end of its own
// lease, so this process releases it there when that lease is over.

package hold

import "time"

// Dependent is a Resource that may be granted under another hold on the same key, such as the read
// side of a lock under its write side. Redis keeps one time to live for both.
type Dependent interface {
	Resource
	// Under returns a lease of the hold under which this one was asked for, or nil.
	Under() *Lease
}

// under returns the hold under which this one was granted, or nil.
func (h *hold) under() *hold {
	if d, ok := h.resource.(Dependent); ok {
		if l := d.Under(); l != nil {
			return l.hold
		}
	}
	return nil
}

// keptUntil returns until when the holds under this one may keep it in Redis; zero if there are
// none.
func (h *hold) keptUntil() (until time.Time) {
	for _, held := range h.engine.HeldAt(h.resource.Key()) {
		if d, ok := held.(*hold); ok && d.under() == h {
			until = later(until, d.until())
		}
	}
	return until
}

// outlived releases the hold in Redis at the end of its lease, if it has ended without a release while
// holds under it go on. It is called when the hold has ended, and when a hold under it has been
// registered, so that the later of the two calls finds both.
func (h *hold) outlived() {
	h.mu.Lock()
	alone := h.gone && (h.lost() == byLoss || h.lost().byItself())
	h.mu.Unlock()
	if alone && !h.keptUntil().IsZero() {
		h.settleAtItsEnd(0)
	}
}
