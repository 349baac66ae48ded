// Package multilock holds several locks as one: all of them, or none. The locks may be of any kind that
// implements lease.Placed, and may belong to one Client or to several.
//
// Programs make a MultiLock with holdfast.NewMultiLock. docs/multilock.md says what a MultiLock
// promises. For one lock on several servers see package quorum.
//
// # How all are taken
//
//	MultiLock.acquire
//	└─ take ── each lock in turn, by its own Lock or TryLock
//	           ├─ all granted ──────────── begin: the Lease
//	           ├─ one refused ─────────── gives back those that it has, and fails
//	           └─ one lost meanwhile ──── gives back those that it has; Lock begins again after a
//	                                      pause, TryLock fails
//
// A MultiLock has no keys and no scripts. Each of its locks is requested, renewed and released in the
// way of a single lock, and has its own token.
//
// # The states of a Lease
//
//	held      every lock is held
//	ended     the first of the locks has ended, for any reason: the contexts are cancelled, then Done
//	          is closed. The other locks stay held, because work may still be going on under them
//	released  Release has released every lock
//
// If a Lease re-enters another Lease on the same locks, both share an account: the metrics count them as
// one hold, which is over when the last of them has ended.
//
// # What holds at all times
//
//   - The locks are always taken in the order of their places, even if they were given in another order.
//     A place is the key in Redis and the address of the server. So no two callers wait for each other
//     in a circle.
//   - A Lease begins only if all of its locks are still held when the last one has been taken.
//   - If a lock is lost while the MultiLock waits for another, that wait ends.
//   - A call that fails gives back the locks that it has taken, before it returns or, if ctx has ended,
//     in the background.
//   - While a call waits for a lock, its context does not carry the leases of the locks that it has
//     taken: no work runs yet. So the Shutdown of a Client ends the wait.
//   - The context of a Lease carries that Lease and the lease of each lock. A Lock of the MultiLock with
//     this context re-enters all locks. A Lock of one of the locks re-enters that lock.
//
// account.mu guards the number of leases. Nothing is called under it.
package multilock
