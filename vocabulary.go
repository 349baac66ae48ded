// The names of package lease that are typed most.

package holdfast

import "github.com/holdfast-go/holdfast/lease"

// What is typed most, so that this package is the only import of most programs.
// Package lease documents each.
type (
	// Lease is one acquisition of something: lease.Lease.
	Lease = lease.Lease
	// Locker is what can be held: lease.Locker.
	Locker = lease.Locker
	// Owner is the id under which something is held: lease.Owner.
	Owner = lease.Owner
)

// The errors, one for each fact; compare with errors.Is. Package lease documents
// each.
var (
	ErrBusy          = lease.ErrBusy
	ErrUnavailable   = lease.ErrUnavailable
	ErrLost          = lease.ErrLost
	ErrReleased      = lease.ErrReleased
	ErrMaxHold       = lease.ErrMaxHold
	ErrClosed        = lease.ErrClosed
	ErrWrongType     = lease.ErrWrongType
	ErrOutOfMemory   = lease.ErrOutOfMemory
	ErrDenied        = lease.ErrDenied
	ErrNotReplicated = lease.ErrNotReplicated
	ErrBadArgument   = lease.ErrBadArgument
	ErrUpgrade       = lease.ErrUpgrade
	ErrNoPermits     = lease.ErrNoPermits
	ErrDeleted       = lease.ErrDeleted
	ErrUnknown       = lease.ErrUnknown
	ErrNoQuorum      = lease.ErrNoQuorum
)

// ParseOwner parses what Owner.String returned: lease.ParseOwner.
func ParseOwner(s string) (Owner, error) { return lease.ParseOwner(s) }
