// The names of package lease that programs use most.

package holdfast

import "github.com/holdfast-go/holdfast/lease"

// Aliases of the types that programs use most, so that this package is the only import of most
// programs. Package lease documents each.
type (
	// Lease is one acquisition of something: lease.Lease.
	Lease = lease.Lease
	// Locker is anything that can be held: lease.Locker.
	Locker = lease.Locker
	// Owner is the id under which Redis knows a hold: lease.Owner.
	Owner = lease.Owner
)

// The errors, one for each fact. Compare with errors.Is. Package lease documents each.
var (
	ErrBusy          = lease.ErrBusy
	ErrUnavailable   = lease.ErrUnavailable
	ErrLost          = lease.ErrLost
	ErrExpired       = lease.ErrExpired
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

// ParseOwner parses a string that Owner.String returned: lease.ParseOwner.
func ParseOwner(s string) (Owner, error) { return lease.ParseOwner(s) }
