// What tests of the fair lock add to the world of all tests. No test of this package leaves a goroutine behind.

package fairlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fairlock"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

const (
	name     = "desk"
	queueKey = "holdfast_lock_queue:{desk}"
	aliveKey = "holdfast_lock_alive:{desk}"
	channel  = "redisson_lock__channel:{desk}"
)

// These are the bounds of the lock, as its users know them.
const (
	placeKept = 5 * time.Second
	pollBound = 1250 * time.Millisecond
)

// fairWorld is a world whose processes wait for the fair lock.
type fairWorld struct{ *world.World }

// process is a process of the world, and its fair lock.
type process struct {
	*world.Process
	*fairlock.Mutex
}

// play runs scene in a world of its own.
func play(t *testing.T, scene func(t *testing.T, w *fairWorld)) {
	t.Helper()
	world.Play(t, func(t *testing.T, w *world.World) { scene(t, &fairWorld{w}) })
}

func (w *fairWorld) process(options ...holdfast.Option) *process {
	w.T.Helper()
	p := w.Process(options...)
	return &process{p, p.FairMutex(name)}
}

// goLock locks on a goroutine of its own, and returns when that waits or is done.
func (w *fairWorld) goLock(ctx context.Context, m interface {
	Lock(context.Context) (*lease.Lease, error)
}) *world.Attempt {
	a := w.Try(func() (*lease.Lease, error) { return m.Lock(ctx) })
	synctest.Wait()
	return a
}

// granted waits for the attempt's lease. It does not wait for ever: a holder that renews its lease
// could keep the attempt waiting.
func (w *fairWorld) granted(a *world.Attempt) *lease.Lease {
	w.T.Helper()
	l, err := a.Result()
	if err != nil {
		w.T.Fatalf("at %v: %v", w.Now(), err)
	}
	return l
}

// wantQueue fails the test unless the queue has exactly this many waiters.
func (w *fairWorld) wantQueue(want int) {
	w.T.Helper()
	ctx := w.T.Context()
	world.Equal(w.T, w.RDB.ZCard(ctx, queueKey).Val(), int64(want), "%d in the queue, want %d (at %v)", want, w.Now())
	world.Equal(w.T, w.RDB.ZCard(ctx, aliveKey).Val(), int64(want), "%d kept alive, want %d (at %v)", want, w.Now())
}

// waiters returns the owners in the queue, the next owner first.
func (w *fairWorld) waiters() []string { return w.RDB.ZRange(w.T.Context(), queueKey, 0, -1).Val() }

func TestMain(m *testing.M) {
	logging.Disable() // go-redis logs every connection that a test refuses
	redistest.Main(m)
}

// must ends the test on an error.
func must(t *testing.T, err error) { t.Helper(); redistest.Must(t, err) }
