// The tests share the lines of a Client in virtual time, and a thing to wait for that needs no Redis.

package line

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/pubsub"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// client is a Client as its lines see it.
type client struct {
	*Lines
	Close func() // closes the Client
}

// newClient returns a Client on the Redis behind rdb.
func newClient(t *testing.T, rdb redis.UniversalClient) *client {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	manager, err := conn.New(rdb, log, conn.Events{})
	redistest.Must(t, err)
	subscriptions := pubsub.New(manager, pubsub.Config{Logger: log})
	closing, end := context.WithCancelCause(context.Background())
	var owners atomic.Int64
	lines := New(Config{
		Subscriptions: subscriptions,
		Closing:       closing,
		NewOwner:      func() int64 { return owners.Add(1) },
		Holds:         func(string) bool { return false },
	})
	return &client{lines, sync.OnceFunc(func() {
		end(errs.Closed)
		subscriptions.Close()
		manager.Close()
	})}
}

// inBubble runs test in virtual time, with the lines of a Client on an embedded server. It checks
// that no line is left once the Client has closed.
func inBubble(t *testing.T, test func(t *testing.T, l *client, s *redistest.MiniServer)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		s := redistest.Mini(t)
		l := newClient(t, s.Client())
		defer func() { // also after a t.Fatal: a remaining waiter would poll for ever
			l.Close()
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			redistest.Equal(t, len(l.byKey), 0, "%d lines are left")
		}()
		test(t, l, s)
	})
}

// thing is what the tries of these tests ask for. It is held until an instant, or without end.
type thing struct {
	mu    sync.Mutex
	held  bool
	until time.Time // zero: no end
	tries int
}

// channel is the channel on which the tests publish releases.
const channel = "released"

// told knows that channel, and hands things over by messages of three numbers.
type told struct{}

func (told) Channels() []string { return []string{channel} }

func (told) HandOver(message string) (by HandOver) {
	var ms int64
	_, _ = fmt.Sscan(message, &by.Owner, &by.Token, &ms)
	by.Left = time.Duration(ms) * time.Millisecond
	return by
}

// asker is an Asker that is one function.
type asker func(context.Context, Ask) (Answer, error)

func (a asker) Try(ctx context.Context, ask Ask) (Answer, error) { return a(ctx, ask) }

// try returns an Asker for the thing. A grant lasts for lease; a negative lease has no end.
func (x *thing) try(lease time.Duration) asker {
	return func(ctx context.Context, _ Ask) (Answer, error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.tries++
		if err := ctx.Err(); err != nil {
			return Answer{}, err
		}
		left := time.Duration(-1)
		if !x.until.IsZero() {
			left = time.Until(x.until)
		}
		if x.held && (x.until.IsZero() || left > 0) {
			return Answer{Held: HeldByTTL(left)}, nil
		}
		x.held, x.until = true, time.Time{}
		if lease >= 0 {
			x.until = time.Now().Add(lease)
		}
		return Answer{Granted: true, Lasts: lease}, nil
	}
}

// taken returns a thing that another process holds without end.
func taken() *thing { return &thing{held: true} }

// take makes another process hold the thing until an instant, or without end.
func (x *thing) take(until time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.held, x.until = true, until
}

// free releases the thing and sends no message.
func (x *thing) free() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.held = false
}

// release frees the thing and sends a message.
func (x *thing) release(s *redistest.MiniServer) {
	x.free()
	s.Publish(channel, "0")
}

func (x *thing) tried() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tries
}

// caller is a Wait on a goroutine of its own.
type caller struct {
	cancel context.CancelFunc
	done   chan struct{}
	out    Outcome
	err    error
	ended  time.Time
}

// wait starts a wait, and returns when it goes on in the background, or has ended.
func wait(l *client, w *Want) *caller {
	ctx, cancel := context.WithCancel(context.Background())
	x := &caller{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		x.out, x.err = l.Wait(ctx, w)
		x.ended = time.Now()
	}()
	synctest.Wait()
	return x
}

// waiting returns a Want for x under the key "k".
func waiting(x *thing, lease time.Duration) *Want {
	return &Want{Key: "k", Channel: channel, Asker: x.try(lease)}
}

// queue starts n waiters, in order.
func queue(l *client, n int, w *Want) []*caller {
	all := make([]*caller, n)
	for i := range all {
		all[i] = wait(l, w)
	}
	return all
}

func (w *caller) isDone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// leave cancels the wait, and fails t unless the wait ends at once and reports that the thing was
// held.
func (w *caller) leave(t *testing.T) {
	t.Helper()
	begun := time.Now()
	w.cancel()
	<-w.done
	redistest.Is(t, "Wait", w.err, context.Canceled)
	redistest.Is(t, "Wait", w.err, errs.Busy)
	redistest.Equal(t, w.ended.Sub(begun), 0, "returned %v after it was cancelled")
}

// mustBeNext fails t unless w has been granted the thing, and none of the rest has.
func mustBeNext(t *testing.T, w *caller, rest ...*caller) {
	t.Helper()
	synctest.Wait()
	if !w.isDone() {
		t.Fatal("the next one has not been granted")
	}
	if w.err != nil || !w.out.Waited {
		t.Errorf("waited %v, %v", w.out.Waited, w.err)
	}
	for i, other := range rest {
		if other.isDone() {
			t.Errorf("%d behind the next one was granted as well, or failed: %v", i+1, other.err)
		}
	}
}
