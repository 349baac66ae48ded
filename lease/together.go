// What it takes to hold several leases as one thing.

package lease

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// Placed is a Locker that can be put in order with others, so that all callers that lock several of
// them do so in the same order. A Mutex, a FairMutex, a stripe and both sides of an RWMutex are
// Placed. The permits of PermitSemaphore.Locker are not.
type Placed interface {
	Locker
	// Place returns where the thing stands. That is the same in every process that is configured
	// alike, and differs from thing to thing. It is "" for a Locker whose every call fails.
	Place() string
}

// PlaceOf returns the place of the thing at key in the Redis of e. It is for the packages of the
// synchronizers.
func PlaceOf(e *engine.Engine, key string) string {
	if e.Broken() != nil || key == "" {
		return ""
	}
	return key + "\x00" + e.Conn.Address()
}

// Fenced is a Resource whose token is stored at a key of its own. It is for the packages of the
// synchronizers.
type Fenced interface {
	Resource
	TokenKey() string
}

// GiveBack releases the lease in the background. The Close of its Client waits for that. The
// channel that GiveBack returns carries the error of that Release. It is for the packages of the
// synchronizers.
func GiveBack(ctx context.Context, l *Lease) <-chan error {
	done := make(chan error, 1)
	if !l.hold.engine.Background(func() { done <- l.Release(ctx) }) {
		done <- l.Release(ctx) // the Client has closed and ended the lease: Release says so
	}
	return done
}

// Retire ends the lease here, and every lease on its hold, as the Close of its Client would.
// Nothing is renewed any more, and what the hold has in Redis is left to run out, because work may
// still be going on under it. GiveBack gives it back sooner. Retire is for the packages of the
// synchronizers.
func Retire(l *Lease) { _ = l.hold.endAll(retired) }
