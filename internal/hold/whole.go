// Contexts of work under a whole of several leases, and of the whole's own lease.

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

// wholeKey is the key under which a context returns the nearest wholeContext in it. It differs from
// leaseKey, so that a Lock re-enters none of the parts.
type wholeKey struct{}

func (wholeKey) carriesALease() {}

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

// Apart returns ctx for the parts of a whole. None of them re-enters a lease that ctx carries, but what is asked for with it
// is work under these leases.
func Apart(ctx context.Context) context.Context {
	var carried []*Lease
	nearest(ctx, func(l *Lease) bool {
		carried = append(carried, l)
		return false
	})
	if carried == nil {
		return ctx
	}
	return Under(apart{ctx}, carried)
}

// Member returns ctx for the members of a quorum, as Apart does. The quorum outlives the loss of a few: they are
// measured and logged as a kind of their own.
func Member(ctx context.Context) context.Context {
	return context.WithValue(Apart(ctx), memberKey{}, true)
}

type memberKey struct{}

// kindOfMembers is the kind of a quorum's members in metrics, spans and logs.
const kindOfMembers = "quorum.member"

func isMember(ctx context.Context) bool { return ctx.Value(memberKey{}) != nil }

// kindOf returns the kind of a resource in metrics, spans and logs.
func kindOf(r Resource, member bool) string {
	if member {
		return kindOfMembers
	}
	return r.Kind()
}

// apart is a context in which no Lock finds a lease to re-enter.
type apart struct{ context.Context }

func (a apart) Value(key any) any {
	if _, ok := key.(leaseKey); ok {
		return nil
	}
	return a.Context.Value(key)
}

// underOf reports whether ctx belongs to work under a whole that has a lease of that Client, and
// that lease lasts.
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

// ownKey is the key under which a context carries a whole's own lease, of type L, on the locks with
// that identity.
type ownKey[L any] struct{ identity string }

func (ownKey[L]) carriesALease() {}

// own is what a context carries for a whole: its lease, and the context that the lease was added to.
type own[L any] struct {
	lease L
	under context.Context
}

// CarryWhole returns parent with a whole's own lease on the locks with that identity, so that a Lock
// with that context re-enters them.
func CarryWhole[L any](parent context.Context, identity string, lease L) context.Context {
	return context.WithValue(parent, ownKey[L]{identity}, own[L]{lease, parent})
}

// WholeIn looks in ctx for leases of type L on the locks with that identity. It returns the
// innermost, and the context that it was added to.
func WholeIn[L any](ctx context.Context, identity string) (lease L, under context.Context, found bool) {
	o, found := ctx.Value(ownKey[L]{identity}).(own[L])
	return o.lease, o.under, found
}
