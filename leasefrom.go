// LeaseFrom: the lease that a context carries.

package holdfast

import "context"

// LeaseFrom returns the lease on locker that ctx carries. With that lease, work under Do, or any code that
// has a lease's context, can read the token, the hold count and the deadline. If ctx carries no lease on
// locker, ok is false. LeaseFrom does no I/O.
//
// If ctx carries several leases on locker, because Lock has re-entered or has taken more permits, LeaseFrom
// returns the lease of the last Lock. Leases on other locks do not matter. The returned lease may have
// ended; its Err says so.
//
// locker may be another value than the one that was locked, but it must be the same kind of lock, of the
// same name and the same Client. RLocker finds the read lease of an RWMutex, and the RWMutex itself finds
// the write lease. The Locker of a PermitSemaphore finds a lease on any number of permits. If ctx carries a
// lease on a MultiLock, it also carries the leases on the locks of that MultiLock. If ctx carries a lease
// on a Quorum, it does not carry the leases on the servers of that Quorum.
//
// LeaseFrom also finds the lease of a Lockable of your own, if the Lockable has the method LeaseFrom(ctx)
// (H, bool), for example because it embeds a lock of Holdfast.
func LeaseFrom[H Handle](ctx context.Context, locker Lockable[H]) (lease H, ok bool) {
	if carried, can := locker.(interface {
		LeaseFrom(ctx context.Context) (H, bool)
	}); can {
		return carried.LeaseFrom(ctx)
	}
	return lease, false
}
