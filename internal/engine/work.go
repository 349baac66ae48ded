// The count of what Close waits for.

package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// work counts what Close waits for: first the calls under way, which may ask for a clean-up when
// they are interrupted, then those clean-ups.
type work struct {
	state atomic.Int64 // the count, and flags for what may not begin

	mu   sync.Mutex
	idle chan struct{} // closed when the count is 0 after close
}

// What may not begin, in work.state.
const (
	noCalls    int64 = 1 << 62 // no call begins any more
	nothing    int64 = 1 << 61 // nothing begins any more
	countsWork       = nothing - 1
)

// begin counts one more, unless it may not begin any more. Work that follows from work that is
// already counted may begin until windUp is over.
func (w *work) begin(follows bool) bool {
	for {
		state := w.state.Load()
		if state&nothing != 0 || state&noCalls != 0 && !follows {
			return false
		}
		if w.state.CompareAndSwap(state, state+1) {
			return true
		}
	}
}

func (w *work) done() {
	if state := w.state.Add(-1); state&noCalls != 0 && state&countsWork == 0 {
		w.mu.Lock() // Close may be waiting by now
		defer w.mu.Unlock()
		w.tell()
	}
}

// tell notifies Close, if it waits, once nothing is left. The caller holds the mutex.
func (w *work) tell() {
	if w.left() == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// close lets no further call begin.
func (w *work) close() { w.state.Or(noCalls) }

// left returns how much there is.
func (w *work) left() int64 { return w.state.Load() & countsWork }

// windUp waits until nothing is left, for at most the time most. The end of ctx ends the wait too,
// but not before the time least is over. After that it lets nothing more begin.
func (w *work) windUp(ctx context.Context, least, most time.Duration) {
	defer w.state.Or(nothing)
	if !w.over(context.Background(), least) {
		w.over(ctx, most-least)
	}
}

// over waits until nothing is left, ctx ends or d is over. It reports whether nothing is left.
func (w *work) over(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.empty():
		return true
	case <-ctx.Done():
	case <-timer.C:
	}
	return false
}

// wait waits until nothing is left, but not beyond the given time. A call that is still in the
// user's own code then, such as a tracer that blocks, is left behind.
func (w *work) wait(until time.Time) {
	w.over(context.Background(), time.Until(until))
}

// empty returns, after close, a channel that is closed when nothing is left.
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
