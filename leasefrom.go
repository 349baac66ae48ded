// LeaseFrom: the lease that a context carries.

package holdfast

import "context"

// LeaseFrom returns the lease that ctx carries on locker, so that work under Do, or any code with a
// lease's context, can read the token, the hold count and the deadline. ok is false if ctx carries
// none. LeaseFrom does no I/O.
//
// If ctx carries several leases on locker, by re-entry or on permits, LeaseFrom returns the
// innermost: that of the last Lock. Leases on other locks do not hide it. The lease may have ended;
// its Err says so.
//
// locker need not be the value that was locked, but it must be the same kind of lock, of the same name
// and the same Client. RLocker finds the read lease of an RWMutex, and the RWMutex itself the write
// lease. The Locker of a PermitSemaphore finds a lease on any number of its permits. A context with a
// lease on a MultiLock carries those on its locks too. One with a lease on a Quorum does not carry
// those on its servers.
//
// The lease of a Lockable of your own is found if the Lockable has the method LeaseFrom(ctx) (H,
// bool), for example because it embeds a lock of Holdfast.
func LeaseFrom[H Handle](ctx context.Context, locker Lockable[H]) (lease H, ok bool) {
	if carried, can := locker.(interface {
		LeaseFrom(ctx context.Context) (H, bool)
	}); can {
		return carried.LeaseFrom(ctx)
	}
	return lease, false
}
