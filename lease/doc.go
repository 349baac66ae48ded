// Package lease has the types that all synchronizers of Holdfast share: the Lease that Lock returns, the
// Owner under which Redis knows the lease, the options that say how a lease is held, and the errors.
//
// A Lease is one acquisition. An owner that re-enters a lock gets another Lease for each Lock. All Leases
// of one owner on one lock make up a hold, and Redis knows only the hold. A hold begins with its first
// Lease and ends when all its Leases are released, in any order.
//
// A lease is renewed until it is released, unless it is fixed. When it has ended, its contexts are
// cancelled, its Done channel is closed, and its Err says why.
package lease
