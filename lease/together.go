// What several leases need to be held as one.

package lease

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Placed is a Locker that can be put in order with others, so that all who lock
// several of them do so in the same order. A Mutex, a FairMutex, a stripe and both
// sides of an RWMutex are; the permits of PermitSemaphore.Locker are not.
type Placed interface {
	Locker
	// Place says where the thing stands: the same in every process that is
	// configured alike, and another for each thing. It is "" for a Locker of which
	// every call fails.
	Place() string
}

// PlaceOf returns the place of what stands at key in the Redis of e. It is for
// the packages of the synchronizers.
func PlaceOf(e *engine.Engine, key string) string {
	if e == nil || key == "" {
		return ""
	}
	return key + "\x00" + e.Conn.Address()
}

// Fenced is a Resource whose token stands at a key. It is for the packages of the
// synchronizers.
type Fenced interface {
	Resource
	TokenKey() string
}

// GiveBack releases the lease in the background of its Client, which waits for
// that when it closes. The error of Release can be read from what it returns. It
// is for the packages of the synchronizers.
func GiveBack(ctx context.Context, l *Lease) <-chan error {
	done := make(chan error, 1)
	if !l.hold.engine.Background(func() { done <- l.Release(ctx) }) {
		done <- l.Release(ctx) // the Client has closed, and ended the lease: this says so
	}
	return done
}

// Retire ends the lease here, and every lease on its hold, as the Close of its Client
// would: nothing is renewed any more, and what it holds is left to run out, since work
// may be going on under it. GiveBack gives it back sooner. It is for the packages of the
// synchronizers.
func Retire(l *Lease) { l.hold.endAll(byLoss, telemetry.LostClosed) }
