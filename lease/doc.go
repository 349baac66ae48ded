// Package lease is the vocabulary that every synchronizer of Holdfast shares:
// the Lease that Lock returns, the Owner under which Redis knows it, the options
// that say how it is to be held, and the errors.
//
// A Lease is one acquisition. Leases of one owner on one thing (the first, and those that
// re-entered it) make up a hold, which is what Redis knows. A hold begins with the first lease and
// ends when all are released, in whatever order.
//
// A lease is renewed until it is released, unless it is fixed. The contexts of a Lease, its Done and
// its Err say when it has ended.
package lease
