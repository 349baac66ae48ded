// Package multilock holds several locks as one: all of them, or none. They may be of any kind that
// is a lease.Placed, and of one Client or of several.
//
// Programs make a MultiLock with holdfast.NewMultiLock. docs/multilock.md says what it promises. One
// lock on several servers is package quorum.
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
// A MultiLock has no keys and no scripts. Each of its locks is asked for, renewed and released as
// if it were alone, and keeps its own promises and its own token.
//
// # The states of a Lease
//
//	held      every lock is held
//	ended     the first of the locks has ended, for any reason: the contexts are cancelled, then Done
//	          is closed. The other locks stay held, because work may still be going on under them
//	released  Release has released every lock
//
// Leases on the same locks, one of which re-entered another, share an account: for the metrics they
// are one hold, which is over with the last of them.
//
// # What holds at all times
//
//   - The locks are taken in one order, whatever order they were given in: by place, which is the
//     key and the address of the server. So no two callers wait for each other in a circle.
//   - A Lease begins only when none of the locks that were taken has ended meanwhile.
//   - A wait for one lock ends when a lock that was taken before it is lost.
//   - What was taken by a call that fails is given back before the call returns, or in the
//     background if ctx has ended.
//   - A wait is no work yet. It does not carry the leases of the locks that were taken, so the
//     Shutdown of a Client ends it.
//   - The context of a Lease carries that Lease and the lease of each lock. Locking all of them with
//     it re-enters all, and locking one re-enters that one.
//
// account.mu guards the number of leases. Nothing is called under it.
package multilock
