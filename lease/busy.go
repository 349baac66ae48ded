// What an error that matches ErrBusy knows of the holder.

package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/hold"
)

// BusyError is part of an error of Lock or TryLock that matches ErrBusy. It has what Redis's last answer
// said about the holder:
//
//	var busy *holdfast.BusyError
//	if errors.As(err, &busy) { log.Print(busy.Holder.Short(), busy.Left) }
//
// A BusyError costs no request of its own. So its fields are zero if Redis was not asked about the holder:
// if the caller waited behind other callers of its process, or if many calls were sent as one request.
type BusyError struct {
	// Holder is the owner that holds the thing. It is zero if the owner is not known. Only a Mutex and a
	// FairMutex can make it known.
	Holder Owner
	// Since is when Holder got the thing, on the server's clock. It is zero if that is not known, for
	// example for Java.
	Since time.Time
	// Left is how long the thing stays taken if its holder neither renews nor releases it. If something
	// else keeps the caller out, such as an earlier caller, Left is how long that can last. NoExpiry means
	// without end; 0 means not known.
	Left time.Duration

	err error
}

// Error returns the text of the whole error. It names the holder if the holder is known.
func (b *BusyError) Error() string {
	text := b.err.Error()
	switch {
	case b.Holder.IsZero():
		return text
	case b.Left == hold.NoExpiry:
		return fmt.Sprintf("%s (holder %s, without an expiry)", text, b.Holder.Short())
	case b.Left <= 0:
		return fmt.Sprintf("%s (holder %s)", text, b.Holder.Short())
	default:
		return fmt.Sprintf("%s (holder %s, %v left)", text, b.Holder.Short(), b.Left.Round(time.Millisecond))
	}
}

// Unwrap returns the same error without what it says about the holder.
func (b *BusyError) Unwrap() error { return b.err }

// Of converts a lease and an error of package hold to the types of this package. Only the packages of the
// synchronizers call it.
func Of(l *hold.Lease, err error) (*Lease, error) {
	if b := (*hold.Busy)(nil); errors.As(err, &b) {
		err = &BusyError{Owner(b.Holder), b.Since, b.Left, err}
	}
	return (*Lease)(l), err
}
