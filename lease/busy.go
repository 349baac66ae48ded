// What an error that matches ErrBusy knows of the holder.

package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/hold"
)

// BusyError is in an error of Lock or TryLock that matches ErrBusy. It has what Redis's last answer said
// about the holder:
//
//	var busy *holdfast.BusyError
//	if errors.As(err, &busy) { log.Print(busy.Holder.Short(), busy.Left) }
//
// It costs no request. So its fields may be zero: for a waiter behind others of its process, which does not
// ask Redis, and if many calls were sent as one.
type BusyError struct {
	// Holder is the owner that holds the thing; zero if that is not known. It is known of a Mutex and
	// a FairMutex.
	Holder Owner
	// Since is when the holder got it, on the server's clock; zero if that is not known, for example for Java.
	Since time.Time
	// Left is how long the thing stays taken if its holder neither renews nor releases it, or how long something else
	// keeps the caller out, such as an earlier caller. NoExpiry means without end; 0 means not known.
	Left time.Duration

	err error
}

// Error returns the text of the whole error, and names the holder if it is known.
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

// Unwrap returns the error without the facts about the holder.
func (b *BusyError) Unwrap() error { return b.err }

// Of returns the lease that package hold has made, and the error, as users know them. It is for the
// packages of synchronizers.
func Of(l *hold.Lease, err error) (*Lease, error) {
	if b := (*hold.Busy)(nil); errors.As(err, &b) {
		err = &BusyError{Owner(b.Holder), b.Since, b.Left, err}
	}
	return (*Lease)(l), err
}
