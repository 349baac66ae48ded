// What it takes to hold several leases as one thing.

package hold

import (
	"context"
	"strings"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// PlaceOf returns the place, which is server and key, of what is at key in the Redis of e.
func PlaceOf(e *engine.Engine, key string) string {
	if e.Broken() != nil || key == "" {
		return ""
	}
	return key + "\x00" + e.Conn.Address()
}

// KeyAt returns the key in a place; "" if there is none.
func KeyAt(place string) string {
	return place[:max(strings.LastIndexByte(place, 0), 0)]
}

// Fenced is a Resource whose token is stored at a key of its own.
type Fenced interface {
	Resource
	TokenKey() string
	// RemadeLife is how long Redis keeps that key, in ms, if it was lost and is made anew.
	RemadeLife() int64
}

// GiveBack releases the lease, under which no work is going on, in the background. The Close of its Client waits for that,
// even if it has ended the lease first. The channel that GiveBack returns carries the error of that Release.
func (l *Lease) GiveBack(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	release := func() { done <- l.traced(ctx, true) }
	if !l.hold.engine.Background(release) {
		release() // the Client has closed and ended the lease, which the error says
	}
	return done
}

// Retire ends the lease here, and every lease on its hold, as the Close of its Client would. Nothing
// is renewed any more, and what the hold has in Redis is left to run out, because work may still be
// going on under it. GiveBack gives it back sooner.
func (l *Lease) Retire() { _ = l.hold.endAll(retired) }
