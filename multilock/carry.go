// How a context carries a lease, so that a Lock with that context re-enters.

package multilock

import "context"

// carried is the key under which a context carries a lease of type L on the locks with that
// identity.
type carried[L any] struct{ identity string }

// CarriesALease implements hold.LeaseKey, so that lease.Bare hides the lease.
func (carried[L]) CarriesALease() {}

// carry returns parent with a lease on the locks with that identity.
func carry[L any](parent context.Context, identity string, lease L) context.Context {
	return context.WithValue(parent, carried[L]{identity}, lease)
}

// carriedBy returns the lease of type L on the locks with that identity that ctx carries, if it
// carries one.
func carriedBy[L any](ctx context.Context, identity string) (lease L, found bool) {
	lease, found = ctx.Value(carried[L]{identity}).(L)
	return lease, found
}
