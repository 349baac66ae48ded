// The Owner: the id under which something is held.

package lease

import "github.com/holdfast-go/holdfast/internal/hold"

// Owner is the id under which something is held: "<uuid of the Client>:<number of the
// acquisition>". It is the field in the hash of a Redisson lock. Two Owners are the same if they
// compare equal. The zero Owner is nobody.
//
// Anybody who knows an Owner can attach to its hold. Treat it as a secret.
type Owner hold.Owner

// ParseOwner parses what Owner.String returned, in this process or another. It also accepts the
// holders of Redisson, whose number is a thread's. For any other string the error matches
// ErrBadArgument.
func ParseOwner(s string) (Owner, error) {
	owner, err := hold.ParseOwner(s)
	return Owner(owner), err
}

// String returns the whole id, or "" for the zero Owner.
func (o Owner) String() string { return hold.Owner(o).String() }

// Short returns enough of the id to tell owners apart in a log, and too little
// to attach to a hold.
func (o Owner) Short() string { return hold.Owner(o).Short() }

// IsZero reports whether o is the zero Owner, which is nobody.
func (o Owner) IsZero() bool { return o == Owner{} }
