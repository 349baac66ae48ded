// Logging and counting for goroutines that must not wait for it.

package engine

import "sync"

// reports are what is to be logged and counted on behalf of goroutines that must
// not wait for it: whoever ends leases in time. Handlers are the user's, and may
// block.
type reports struct {
	mu      sync.Mutex
	queue   []func()
	running bool
}

// Report has f called soon, in order, on a goroutine that Close waits for.
func (e *Engine) Report(f func()) {
	r := &e.reports
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, f)
	if !r.running {
		r.running = e.Background(e.deliver)
	}
	if !r.running {
		r.queue = nil // the Client has closed
	}
}

// deliver calls what has been reported until there is nothing left.
func (e *Engine) deliver() {
	r := &e.reports
	for {
		r.mu.Lock()
		queue := r.queue
		r.queue = nil
		if len(queue) == 0 {
			r.running = false
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		for _, f := range queue {
			f()
		}
	}
}
