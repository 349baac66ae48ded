// Which waiters may pass others that ask for a different amount.

package engine

import (
	"context"
	"slices"
	"sync"
	"time"
)

// patience is how long a waiter that asks for more lets waiters that ask for less pass it. After
// that no waiter of this process passes it, so that it gets its turn.
const patience = time.Second

// overtaking keeps the order among lines that ask for different weights of one thing, such as permits
// of one semaphore. A waiter that asks for less may pass one that asks for more, because what is
// free may be enough for it alone, but only until patience is over.
type overtaking struct {
	mu     sync.Mutex
	groups map[string][]*claimant
}

// claimant is the head of a line that waits for some weight.
type claimant struct {
	weight int
	since  time.Time
	gone   chan struct{}
}

// arrive notes that the head of a line waits, since that time. The function that it returns notes
// that it waits no longer.
func (p *overtaking) arrive(w Waiting, since time.Time) (leave func()) {
	h := &claimant{weight: w.Weight, since: since, gone: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.groups == nil {
		p.groups = make(map[string][]*claimant)
	}
	p.groups[w.Group] = append(p.groups[w.Group], h)
	return func() { p.depart(w.Group, h) }
}

func (p *overtaking) depart(group string, h *claimant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(h.gone)
	left := slices.DeleteFunc(p.groups[group], func(other *claimant) bool { return other == h })
	if len(left) == 0 {
		delete(p.groups, group)
	} else {
		p.groups[group] = left
	}
}

// ahead returns a waiter that w may not pass, or nil if there is none.
func (p *overtaking) ahead(w Waiting) *claimant {
	if w.Weight == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.groups[w.Group] {
		if h.weight > w.Weight && time.Since(h.since) > patience {
			return h
		}
	}
	return nil
}

// Overtakes reports whether a try of w would pass a waiter that it may not pass.
func (e *Engine) Overtakes(w Waiting) bool { return e.overtaking.ahead(w) != nil }

// giveWay waits until there is no waiter that w may not pass, ctx ends, or the Client closes.
func (e *Engine) giveWay(ctx context.Context, w Waiting) error {
	for {
		h := e.overtaking.ahead(w)
		if h == nil {
			return nil
		}
		select {
		case <-h.gone:
		case <-ctx.Done():
			return ctx.Err()
		case <-e.closing.Done():
			return context.Cause(e.closing)
		}
	}
}
