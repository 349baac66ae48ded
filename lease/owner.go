// The Owner: the id under which something is held.

package lease

import "github.com/holdfast-go/holdfast/internal/hold"

// Owner is the id under which Redis knows a holder: "<uuid of the Client>:<number of the acquisition>". It
// is the name of a field in the hash of the lock, as in a lock of Redisson. Two Owners are the same if they
// compare equal. The zero Owner is nobody.
//
// Anybody who knows an Owner can attach to its hold. So treat an Owner as a secret.
type Owner hold.Owner

// ParseOwner parses a string that Owner.String returned, in this process or another. It also accepts the
// ids of holders in Redisson, whose number is the id of a thread. For any other string the error matches
// ErrBadArgument.
func ParseOwner(s string) (Owner, error) {
	owner, err := hold.ParseOwner(s)
	return Owner(owner), err
}

// String returns the whole id, or "" for the zero Owner.
func (o Owner) String() string { return hold.Owner(o).String() }

// Short returns a part of the id that is enough to distinguish owners in a log, but too little to attach to
// a hold.
func (o Owner) Short() string { return hold.Owner(o).Short() }

// IsZero reports whether o is the zero Owner, which is nobody.
func (o Owner) IsZero() bool { return o == Owner{} }
