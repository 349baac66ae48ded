// What the methods of a nil or zero lease do, as a failed Lock returns it: what those of a nil
// lease.Lease do.

package multilock

import "github.com/holdfast-go/holdfast/lease"

// none is the lease that a failed Lock returns.
var none *lease.Lease

// absent reports whether l is nil or the zero Lease.
func (l *Lease) absent() bool { return l == nil || l.account == nil }

// absent reports whether l is nil or the zero QuorumLease.
func (l *QuorumLease) absent() bool { return l == nil || l.hold == nil }
