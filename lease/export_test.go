// What the tests do to a lease that nothing else can do.

package lease

import (
	"time"
	"unsafe"
)

// WallClockRanOn does to the lease's hold what is done to all when the wall clock has run
// ahead by whole seconds, as while a machine sleeps or when the clock is set: what the
// hold remembers is that far behind, and the scheduler finds out.
func (l *Lease) WallClockRanOn(d time.Duration) {
	h := l.hold
	h.mu.Lock()
	// A time with a monotonic reading has its wall clock's seconds above 30 bits.
	*(*uint64)(unsafe.Pointer(&h.deadline)) -= uint64(d/time.Second) << 30
	h.mu.Unlock()
	h.Suspect(time.Now())
	h.mu.Lock()
	h.renewing, h.renewAt = false, 0 // the scheduler would send it now
	h.mu.Unlock()
	h.engine.Renewals.Schedule(h, time.Now())
}
