// This file gives the tests a way to change a lease that nothing else has.

package hold

import (
	"time"
	"unsafe"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// WallClockRanOn does to the lease's hold what happens to all holds when the wall clock has run
// ahead by whole seconds: while a machine sleeps, or when the clock is set. The times that the hold
// remembers are then that far behind, and the scheduler finds this out.
func (l *Lease) WallClockRanOn(d time.Duration) {
	h := l.hold
	h.mu.Lock()
	// A time with a monotonic reading keeps the seconds of its wall clock above the lowest 30 bits.
	*(*uint64)(unsafe.Pointer(&h.deadline)) -= uint64(d/time.Second) << 30
	h.mu.Unlock()
	h.Suspect(time.Now())
	h.mu.Lock()
	h.renewing, h.renewAt = false, 0 // so that the scheduler sends the renewal now
	h.mu.Unlock()
	h.engine.Renewals.Schedule(h, time.Now())
}

// WallClockRanOnDuringARenewal is WallClockRanOn while a renewal is under way. It returns a function that answers that
// renewal, and reports whether Redis has to vouch for the hold by the same time as before.
func (l *Lease) WallClockRanOnDuringARenewal(d time.Duration) (answer func() bool) {
	h, sent := l.hold, time.Now()
	*(*uint64)(unsafe.Pointer(&sent)) -= uint64(d/time.Second) << 30
	h.mu.Lock()
	h.renewing = true
	h.mu.Unlock()
	h.Suspect(time.Now())
	h.mu.Lock()
	vouch := h.seldom.vouch
	h.mu.Unlock()
	return func() bool {
		h.prolong(engine.Renewed{Sent: sent, TTL: l.length, Held: true})
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.suspect && h.seldom.vouch == vouch
	}
}
