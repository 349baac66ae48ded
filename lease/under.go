// A hold under which others were granted: they keep it in Redis past its own lease, and so
// it is given up there when that is over.

package lease

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// Dependent is a Resource that may be granted under another hold on the same key, as the
// read side of a lock is under its write side. Redis keeps one time to live for both. It is
// for the packages of the synchronizers.
type Dependent interface {
	Resource
	// Under returns a lease of the hold under which it was asked for, or nil.
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

// keptUntil returns until when holds under this one may keep it in Redis; zero if there
// are none.
func (h *hold) keptUntil() (until time.Time) {
	for _, held := range h.engine.HeldAt(h.resource.Key()) {
		if d, ok := held.(*hold); ok && d.under() == h {
			until = later(until, d.until())
		}
	}
	return until
}

// outlived gives the hold up in Redis at the end of its lease, if it has ended by itself and
// holds under it go on. It is called when the hold has ended, and when one under it has
// been registered: whichever comes last finds both.
func (h *hold) outlived() {
	h.mu.Lock()
	alone := h.gone && (h.lost == byLoss || h.lost.byItself())
	h.mu.Unlock()
	if !alone || h.keptUntil().IsZero() {
		return
	}
	h.engine.Background(func() {
		// Until then work may still be going on.
		if engine.Sleep(h.engine.Closing(), time.Until(h.until())) == nil {
			h.settle(0)
		}
	})
}
