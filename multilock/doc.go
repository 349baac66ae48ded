// Package multilock holds several locks together: all of them, or none of them. The locks may be of any
// kind that implements lease.Placed. They may belong to one Client or to several Clients.
//
// Programs make a MultiLock with holdfast.NewMultiLock. docs/multilock.md says what a MultiLock promises.
// For one lock on several servers, see package quorum.
//
// # How all locks are taken
//
//	MultiLock.acquire
//	└─ take ── calls Lock or TryLock of each lock, one lock after another
//	           ├─ all locks were granted ── begin makes the Lease
//	           ├─ a lock was refused ────── take gives back the locks that it has, and the call fails
//	           └─ a lock that take had ──── take gives back the locks that it has. Then Lock begins again
//	              was lost                  after a pause, but TryLock fails
//
// A MultiLock has no keys and no scripts of its own. Each of its locks is requested, renewed and released
// in the same way as a single lock, and has its own token.
//
// # The states of a Lease
//
//	held      every lock is held
//	ended     one of the locks has ended, for any reason. The contexts of the Lease are cancelled first, and
//	          then its Done is closed. The other locks stay held, because work may still be going on
//	released  Release has released every lock
//
// If a Lease re-enters another Lease on the same locks, both Leases share an account. The metrics count
// them as one hold, which is over when the last Lease of the account has ended.
//
// # What holds at all times
//
//   - The locks are always taken in the order of their places, even if the program gave them in another
//     order. A place is the key of a lock in Redis, together with the address of the server. So no two
//     callers wait for each other in a circle.
//   - A Lease begins only if all of its locks are still held when the last lock has been taken.
//   - If a lock that was taken is lost while the MultiLock waits for another lock, the wait ends.
//   - A call that fails gives back the locks that it has taken. The call does so before it returns or, if
//     ctx has ended, in the background.
//   - While a call waits for a lock, the context of the wait does not carry the leases of the locks that
//     the call has taken, because no work runs yet. So the Shutdown of a Client ends the wait.
//   - The context of a Lease carries that Lease, and the lease of each lock. With this context, Lock of the
//     MultiLock re-enters all locks, and Lock of one of the locks re-enters that lock.
//
// account.mu guards the number of leases. Code that holds account.mu calls no function.
package multilock
