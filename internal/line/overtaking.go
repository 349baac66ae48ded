// Which waiters may pass others that ask for a different amount.

package line

import (
	"context"
	"slices"
	"sync"
	"time"
)

// patience is how long a waiter that asks for more lets waiters that ask for less pass it. After
// that no waiter of this process passes it, so that it gets its turn.
const patience = time.Second

// overtaking keeps the order among lines that ask for different weights of one thing, such as
// permits of one semaphore. A waiter that asks for less may pass one that asks for more, because what is
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
func (o *overtaking) arrive(w *Want, since time.Time) (leave func()) {
	c := &claimant{weight: w.Weight, since: since, gone: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.groups == nil {
		o.groups = make(map[string][]*claimant)
	}
	o.groups[w.Group] = append(o.groups[w.Group], c)
	return func() { o.depart(w.Group, c) }
}

func (o *overtaking) depart(group string, c *claimant) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(c.gone)
	left := slices.DeleteFunc(o.groups[group], func(other *claimant) bool { return other == c })
	if len(left) == 0 {
		delete(o.groups, group)
	} else {
		o.groups[group] = left
	}
}

// ahead returns a waiter that w may not pass, or nil if there is none.
func (o *overtaking) ahead(w *Want) *claimant {
	if w.Weight == 0 {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.groups[w.Group] {
		if c.weight > w.Weight && time.Since(c.since) > patience {
			return c
		}
	}
	return nil
}

// Overtakes reports whether a try of w would pass a waiter that it may not pass.
func (l *Lines) Overtakes(w *Want) bool { return l.overtaking.ahead(w) != nil }

// giveWay waits until there is no waiter that w may not pass, ctx ends, or the Client closes.
func (l *Lines) giveWay(ctx context.Context, w *Want) error {
	for {
		c := l.overtaking.ahead(w)
		if c == nil {
			return nil
		}
		select {
		case <-c.gone:
		case <-ctx.Done():
			return ctx.Err()
		case <-l.closing(w).Done():
			return context.Cause(l.closing(w))
		}
	}
}
