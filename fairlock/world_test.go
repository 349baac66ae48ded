// This file is about the world of the tests: one Redis on virtual time, and processes that use it.

package fairlock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fairlock"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

const (
	name      = "desk"
	queueKey  = "holdfast_lock_queue:{desk}"
	aliveKey  = "holdfast_lock_alive:{desk}"
	channel   = "redisson_lock__channel:{desk}"
	allTokens = "redisson_lock_token:"
)

// These are the bounds of the lock, as its users know them.
const (
	queueLease = 5 * time.Second
	pollBound  = 1250 * time.Millisecond
)

// world is one Redis in a synctest bubble.
type world struct {
	t         *testing.T
	mini      *redistest.MiniServer
	rdb       *redis.Client // a client of the test itself
	start     time.Time
	processes []*process
}

// process is one Client behind a network of its own.
type process struct {
	*holdfast.Client
	net *redistest.FaultProxy
	*fairlock.Mutex
}

// play runs scene in a world of its own. When every process has closed, only tokens may be left as
// keys, and no channel.
func play(t *testing.T, scene func(t *testing.T, w *world)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		w := &world{t: t, mini: redistest.Mini(t), start: time.Now()}
		w.rdb = w.mini.Client()
		scene(t, w)
		for _, p := range w.processes {
			p.Close()
		}
		redistest.LeftBehind(t, w.rdb, allTokens)
	})
}

func (w *world) process(options ...holdfast.Option) *process {
	w.t.Helper()
	p := &process{net: w.mini.Proxy()}
	p.Client = holdfast.New(p.net.Client(w.t), options...)
	p.Mutex = p.FairMutex(name)
	w.processes = append(w.processes, p)
	w.t.Cleanup(func() { p.Close() })
	return p
}

func (w *world) now() time.Duration { return time.Since(w.start) }

// at sleeps until d after the beginning of the world.
func (w *world) at(d time.Duration) {
	w.t.Helper()
	if late := w.now() - d; late > 0 {
		w.t.Fatalf("it is %v already, %v later than the test wants", w.now(), late)
	}
	time.Sleep(d - w.now())
	synctest.Wait()
}

func (w *world) lock(ctx context.Context, m lease.Locker) *lease.Lease {
	w.t.Helper()
	l, err := m.Lock(ctx)
	if err != nil {
		w.t.Fatalf("at %v: %v", w.now(), err)
	}
	return l
}

func (w *world) release(l *lease.Lease) {
	w.t.Helper()
	if err := l.Release(w.t.Context()); err != nil {
		w.t.Errorf("at %v: %v", w.now(), err)
	}
}

// attempt is a Lock that runs on a goroutine of its own.
type attempt struct {
	done  chan struct{}
	lease *lease.Lease
	err   error
	at    time.Duration // when the Lock returned
}

func (w *world) goLock(ctx context.Context, m interface {
	Lock(context.Context) (*lease.Lease, error)
}) *attempt {
	a := &attempt{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.lease, a.err = m.Lock(ctx)
		a.at = w.now()
	}()
	synctest.Wait()
	return a
}

// granted waits for the attempt's lease. It does not wait for ever: a holder that renews its lease
// could keep the attempt waiting.
func (w *world) granted(a *attempt) *lease.Lease {
	w.t.Helper()
	select {
	case <-a.done:
	case <-time.After(time.Hour):
		w.t.Fatalf("at %v: waits still", w.now())
	}
	if a.err != nil {
		w.t.Fatalf("at %v: %v", w.now(), a.err)
	}
	return a.lease
}

func (a *attempt) pending() bool {
	synctest.Wait()
	select {
	case <-a.done:
		return false
	default:
		return true
	}
}

// wantQueue fails the test unless the queue has exactly this many waiters.
func (w *world) wantQueue(want int) {
	w.t.Helper()
	ctx := w.t.Context()
	if n := w.rdb.ZCard(ctx, queueKey).Val(); n != int64(want) {
		w.t.Errorf("at %v: %d in the queue, want %d", w.now(), n, want)
	}
	if n := w.rdb.ZCard(ctx, aliveKey).Val(); n != int64(want) {
		w.t.Errorf("at %v: %d kept alive, want %d", w.now(), n, want)
	}
}

func (w *world) within(what string, d, least, most time.Duration) {
	w.t.Helper()
	if d < least || d > most {
		w.t.Errorf("%s: %v, want from %v to %v", what, d, least, most)
	}
}

// waiters returns the owners in the queue, the next owner first.
func (w *world) waiters() []string {
	return w.rdb.ZRange(w.t.Context(), queueKey, 0, -1).Val()
}

func (w *world) wantOrder(got []int, n int) {
	w.t.Helper()
	want := make([]int, n)
	for i := range want {
		want[i] = i
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("granted in the order %v", got)
	}
}

func wantErr(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if fmt.Sprint(err) == "" || !isErr(err, target) {
			t.Errorf("error %v, want one that matches %q", err, target)
		}
	}
}
