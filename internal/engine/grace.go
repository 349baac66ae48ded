// How long a release tries.

package engine

import (
	"context"
	"sync/atomic"
	"time"
)

// Grace is how long a release tries before it leaves the rest to the background.
const Grace = 5 * time.Second

// shared is how long callers are given the same grace.
const shared = 100 * time.Millisecond

// grace is a context that ends when the time of the releases that use it is over. All releases
// within a tenth of a second share one: a timer for each would be more than a tenth of a release's
// cost.
type grace struct {
	context.Context
	begun time.Time
	end   context.CancelFunc
}

// graces keeps the last grace that was made.
type graces struct{ last atomic.Pointer[grace] }

// Grace returns a context that ends after Grace, or up to a tenth of a second sooner.
func (e *Engine) Grace() context.Context {
	now, g := time.Now(), e.graces.last.Load()
	if g != nil && now.Sub(g.begun) < shared {
		return g
	}
	// If two callers each make one at once, only the one that is stored last is shared.
	ctx, end := context.WithTimeout(context.Background(), Grace)
	g = &grace{ctx, now, end}
	e.graces.last.Store(g)
	return g
}

// close ends the last grace, which no call needs any more. The others end by themselves.
func (gs *graces) close() {
	if g := gs.last.Load(); g != nil {
		g.end()
	}
}
