// How a context carries a lease, so that a Lock with that context re-enters.

package multilock

import "context"

// carried is the key under which a context carries a lease of type L on the locks with that
// identity.
type carried[L any] struct{ identity string }

// CarriesALease implements hold.LeaseKey, so that lease.Bare hides the lease.
func (carried[L]) CarriesALease() {}

// carrier is what a context carries: a lease, and the context that it was added to.
type carrier[L any] struct {
	lease L
	under context.Context
}

// carry returns parent with a lease on the locks with that identity.
func carry[L any](parent context.Context, identity string, lease L) context.Context {
	return context.WithValue(parent, carried[L]{identity}, carrier[L]{lease, parent})
}

// carriedBy returns the innermost lease of type L on the locks with that identity that ctx carries, if
// it carries one, and the context that the lease was added to.
func carriedBy[L any](ctx context.Context, identity string) (lease L, under context.Context, found bool) {
	c, found := ctx.Value(carried[L]{identity}).(carrier[L])
	return c.lease, c.under, found
}
