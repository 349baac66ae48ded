// Contexts of work under a whole of several leases, which no one of them stands for.

package hold

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// wholeContext is a context of work under a whole of several leases.
type wholeContext struct {
	context.Context
	parts []*Lease
}

// wholeKey is the key under which a context returns the nearest wholeContext in it. It is another
// than leaseKey, so that a Lock re-enters none of the parts.
type wholeKey struct{}

// CarriesALease implements LeaseKey.
func (wholeKey) CarriesALease() {}

func (w *wholeContext) Value(key any) any {
	if _, ok := key.(wholeKey); ok {
		return w
	}
	return w.Context.Value(key)
}

// Under returns parent for work under a whole of these leases. It carries none of them, but what is
// asked for with it is work that the Shutdown of their Clients waits for, as long as they last.
func Under(parent context.Context, parts []*Lease) context.Context {
	return &wholeContext{parent, parts}
}

// underOf reports whether ctx is of work under a whole with a lease of that Client that lasts.
func underOf(ctx context.Context, e *engine.Engine) bool {
	for {
		w, ok := ctx.Value(wholeKey{}).(*wholeContext)
		if !ok {
			return false
		}
		for _, l := range w.parts {
			if l.lastsAt(e) {
				return true
			}
		}
		ctx = w.Context
	}
}
