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

// grace is a context that bounds releases. All releases within a tenth of a second share one: a
// timer for each would be more than a tenth of a release's cost.
type grace struct {
	context.Context
	until time.Time
	end   context.CancelFunc
}

// graces keeps the last grace of each length that was made: the whole one, and a shorter one. Holds
// that were handed over by a message last for much the same time, so their releases share the
// shorter one.
type graces struct{ whole, shorter atomic.Pointer[grace] }

// Grace returns a context that ends after Grace, or up to a tenth of a second sooner.
func (e *Engine) Grace() context.Context {
	return share(&e.graces.whole, time.Now().Add(Grace))
}

// GraceUntil returns a context that ends at until, which is sooner than after Grace, or up to a
// tenth of a second before that.
func (e *Engine) GraceUntil(until time.Time) context.Context {
	return share(&e.graces.shorter, until)
}

// share returns the last grace, if it ends at until or little sooner, or a new one.
func share(last *atomic.Pointer[grace], until time.Time) context.Context {
	if g := last.Load(); g != nil {
		if sooner := until.Sub(g.until); sooner >= 0 && sooner < shared {
			return g
		}
	}
	// If two callers each make one at once, only the one that is stored last is shared.
	ctx, end := context.WithDeadline(context.Background(), until)
	g := &grace{ctx, until, end}
	last.Store(g)
	return g
}

// close ends the last graces, which no call needs any more. The others end when their time is over.
func (gs *graces) close() {
	for _, last := range []*atomic.Pointer[grace]{&gs.whole, &gs.shorter} {
		if g := last.Load(); g != nil {
			g.end()
		}
	}
}
