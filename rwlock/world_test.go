// This file is about the world in which the unit tests play: one Redis on virtual time, any number
// of processes that use it, and a client of the test itself that looks on.

package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/rwlock"
)

// These are the lock that most tests are about, and its neighbours in Redis.
const (
	name     = "myLock"
	tokenKey = "redisson_lock_token:{myLock}"
	channel  = "redisson_rwlock:{myLock}"
	readers  = "holdfast_rw_readers:{myLock}"
	writers  = "holdfast_rw_writers:{myLock}"
	waiting  = "holdfast_rw_waiting:{myLock}"
	prefix   = "{myLock}:"
)

// world is one Redis in a synctest bubble.
type world struct {
	*testing.T
	mini  *redistest.MiniServer
	rdb   *redis.Client // a client of the test itself
	start time.Time

	clients []*holdfast.Client
}

// play runs scene in a world of its own, on virtual time. When every process has closed, only
// tokens may be left as keys, and no channel.
func play(t *testing.T, scene func(w *world)) {
	t.Helper()
	redistest.Bubble(t, func(t *testing.T) {
		w := &world{T: t, mini: redistest.Mini(t), start: time.Now()}
		w.rdb = w.mini.Client()
		scene(w)
		for _, c := range w.clients {
			c.Close()
		}
		redistest.LeftBehind(t, w.rdb, "redisson_lock_token:")
	})
}

// process starts a process and returns its view of the lock.
func (w *world) process(options ...lease.Option) *rwlock.RWMutex {
	w.Helper()
	return w.behind(w.mini.Client(), options...)
}

// behind starts a process that talks through that client.
func (w *world) behind(rdb *redis.Client, options ...lease.Option) *rwlock.RWMutex {
	c := holdfast.New(rdb)
	w.clients = append(w.clients, c)
	w.Cleanup(func() {
		c.Close()
		rdb.Close()
	})
	return c.RWMutex(name, options...)
}

// now returns the age of the world.
func (w *world) now() time.Duration { return time.Since(w.start) }

// at sleeps until d after the beginning of the world.
func (w *world) at(d time.Duration) {
	w.Helper()
	if late := w.now() - d; late > 0 {
		w.Fatalf("it is %v already, %v later than the test wants", w.now(), late)
	}
	time.Sleep(d - w.now())
	synctest.Wait()
}

// got fails the test unless a call gave a lease.
func (w *world) got(l *lease.Lease, err error) *lease.Lease {
	w.Helper()
	if err != nil {
		w.Fatalf("at %v: %v", w.now(), err)
	}
	return l
}

// refused fails the test unless a call gave an error that matches the targets.
func (w *world) refused(l *lease.Lease, err error, targets ...error) {
	w.Helper()
	if l != nil {
		w.Errorf("at %v: a lease, want %v", w.now(), targets)
	}
	for _, target := range targets {
		if !errors.Is(err, target) {
			w.Errorf("at %v: error %v, want one that matches %q", w.now(), err, target)
		}
	}
}

// release releases or fails the test.
func (w *world) release(leases ...*lease.Lease) {
	w.Helper()
	for _, l := range leases {
		if err := l.Release(w.Context()); err != nil {
			w.Errorf("at %v: %v", w.now(), err)
		}
	}
}

// wantFields fails the test unless these, and no others, are the lock's fields.
func (w *world) wantFields(want ...string) {
	w.Helper()
	fields, err := w.rdb.HGetAll(w.Context(), name).Result()
	if err != nil {
		w.Fatal(err)
	}
	var got []string
	for field, value := range fields {
		got = append(got, field+"="+value)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.Errorf("at %v: fields\n got %q\nwant %q", w.now(), got, want)
	}
}

// wantTTL fails the test unless the key's time to live is d; -2: no key.
func (w *world) wantTTL(key string, d time.Duration) {
	w.Helper()
	got, err := w.rdb.PTTL(w.Context(), key).Result()
	if err != nil {
		w.Fatal(err)
	}
	if got != d {
		w.Errorf("at %v: PTTL %s is %v, want %v", w.now(), key, got, d)
	}
}

const gone = time.Duration(-2)

// wantMarks fails the test unless exactly r readers and wr writers have marks.
func (w *world) wantMarks(r, wr int64) {
	w.Helper()
	gotR, gotW, all := w.rdb.ZCard(w.Context(), readers).Val(), w.rdb.ZCard(w.Context(), writers).Val(), w.rdb.ZCard(w.Context(), waiting).Val()
	if gotR != r || gotW != wr || all != r+wr {
		w.Errorf("at %v: marks of %d readers and %d writers, %d in all; want %d and %d", w.now(), gotR, gotW, all, r, wr)
	}
}

// timeout is the key of an owner's i-th read hold.
func timeout(l *lease.Lease, i int) string {
	return fmt.Sprintf("%s%s:rwlock_timeout:%d", prefix, l.Owner(), i)
}

// messages subscribes to the channel. The returned function ends the subscription and returns the
// messages with their instants.
func (w *world) messages() func() []string {
	w.Helper()
	ps := w.rdb.Subscribe(context.Background(), channel)
	if _, err := ps.Receive(w.Context()); err != nil {
		w.Fatal(err)
	}
	var got []string
	var done sync.WaitGroup
	done.Go(func() {
		for {
			m, err := ps.ReceiveMessage(context.Background())
			if err != nil {
				return
			}
			got = append(got, fmt.Sprintf("%v %s", w.now(), m.Payload))
		}
	})
	return func() []string {
		synctest.Wait()
		ps.Close()
		done.Wait()
		return got
	}
}

// call is a call that runs on a goroutine of its own.
type call struct {
	done  chan struct{}
	lease *lease.Lease
	err   error
	at    time.Duration // when the call returned
}

// begin calls f on a goroutine of its own, and returns when it waits or is done.
func (w *world) begin(f func(context.Context) (*lease.Lease, error)) *call {
	return w.beginWith(w.Context(), f)
}

func (w *world) beginWith(ctx context.Context, f func(context.Context) (*lease.Lease, error)) *call {
	c := &call{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.lease, c.err = f(ctx)
		c.at = w.now()
	}()
	synctest.Wait()
	return c
}

// pending says whether a call has not returned yet.
func (c *call) pending() bool {
	synctest.Wait()
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// result returns the lease of a call that must have succeeded. It does not wait for ever: a holder
// that renews its lease could keep the call waiting.
func (w *world) result(c *call) *lease.Lease {
	w.Helper()
	select {
	case <-c.done:
	case <-time.After(time.Hour):
		w.Fatalf("at %v: waits still", w.now())
	}
	return w.got(c.lease, c.err)
}

// wantPending fails the test unless all the calls wait, or, if want is false, none of them waits.
func (w *world) wantPending(want bool, calls ...*call) {
	w.Helper()
	for i, c := range calls {
		if got := c.pending(); got != want {
			w.Errorf("at %v: call %d pending: %v, want %v (%v)", w.now(), i, got, want, c.err)
		}
	}
}

// z returns a member of a sorted set.
func z(score float64, member string) redis.Z { return redis.Z{Score: score, Member: member} }

func containsAll(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// sorted returns the words of text in order.
func sorted(text string) string {
	words := strings.Fields(text)
	slices.Sort(words)
	return strings.Join(words, " ")
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}
