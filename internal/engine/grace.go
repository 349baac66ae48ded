// The time that a release has.

package engine

import (
	"context"
	"sync/atomic"
	"time"
)

// Grace is how long a release tries before it leaves the rest to the background.
const Grace = 5 * time.Second

// shared is for how long callers are given the same context.
const shared = 100 * time.Millisecond

// grace is a context that ends when the grace of those is over who were given it.
// All of a tenth of a second share one: a timer for each release would be more than a
// tenth of its cost.
type grace struct {
	context.Context
	begun time.Time
	end   context.CancelFunc
}

// graces has the last one made.
type graces struct{ last atomic.Pointer[grace] }

// Grace returns a context that ends after Grace, or up to a tenth of a second before.
func (e *Engine) Grace() context.Context {
	now, g := time.Now(), e.graces.last.Load()
	if g != nil && now.Sub(g.begun) < shared {
		return g
	}
	// Of two that are made at once, one is used once.
	ctx, end := context.WithTimeout(context.Background(), Grace)
	g = &grace{ctx, now, end}
	e.graces.last.Store(g)
	return g
}

// close ends the last one, which no call needs any more. The others end by themselves.
func (gs *graces) close() {
	if g := gs.last.Load(); g != nil {
		g.end()
	}
}
