// The lines of one Client, and what the Client lends to them.

package line

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/pubsub"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Lines are the lines of one Client: one for each name that its goroutines wait for. Only the head
// of a line talks to Redis. A line without waiters remains only while it has a seat, which is while
// this process holds the thing (see Abandon), or while a release takes a seat for it.
type Lines struct {
	client     Config // what the Client lends
	overtaking overtaking
	awaited    awaited
	spare      sync.Pool // of *waiter
	timers     sync.Pool // of *time.Timer, for heads

	mu    sync.Mutex
	byKey map[string]*line
}

// Config is what a Client lends to its lines.
type Config struct {
	Subscriptions *pubsub.Service
	Telemetry     *telemetry.Telemetry
	// Closing ends when the Client begins to close. Its cause ends every wait.
	Closing context.Context
	// NewOwner returns the number of a new owner.
	NewOwner func() int64
	// Holds reports whether the Client holds something under key. It does not block.
	Holds func(key string) bool
	// Wide reports whether a request about key may take effect later than conn.Window after its sending.
	// It does not block. nil: none does.
	Wide func(key string) bool
}

// closing returns the context that ends the wait when the Client closes or shuts down. The caller's
// own context ends it too.
func (l *Lines) closing(w *Want) context.Context {
	if w.Closing != nil {
		return w.Closing
	}
	return l.client.Closing
}

// New returns the lines of a Client. Nobody stands in them yet.
func New(c Config) *Lines {
	return &Lines{client: c, awaited: awaited{seed: maphash.MakeSeed(), start: time.Now()}}
}
