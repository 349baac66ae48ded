// The count of what Close waits for.

package engine

import (
	"sync"
	"time"
)

// work counts what Close waits for: first the calls under way, which may ask for
// a clean-up as they are interrupted, then those clean-ups.
type work struct {
	mu      sync.Mutex
	count   int
	closing bool          // no call begins any more
	stopped bool          // nothing begins any more
	idle    chan struct{} // closed when count is 0 after closing
}

// begin counts one more, unless it may not begin any more. What follows from
// something that is counted already may begin until windUp is over.
func (w *work) begin(follows bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped || w.closing && !follows {
		return false
	}
	w.count++
	return true
}

func (w *work) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count--
	w.tell()
}

// tell tells who waits, if there is nothing left. The caller holds the mutex.
func (w *work) tell() {
	if w.count == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// close lets no further call begin.
func (w *work) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closing = true
}

// windUp waits, for grace at the most, until nothing is left, and then lets
// nothing more begin.
func (w *work) windUp(grace time.Duration) {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-w.empty():
	case <-timer.C:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
}

// wait waits until nothing is left.
func (w *work) wait() { <-w.empty() }

// empty returns a channel that is closed when nothing is left.
func (w *work) empty() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	w.tell()
	return idle
}
