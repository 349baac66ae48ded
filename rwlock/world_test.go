// What tests of the read-write lock add to the world of all tests.

package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
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

func TestMain(m *testing.M) {
	redistest.Together(4) // these tests wait for clusters
	redistest.Main(m)
}

// rwWorld is a world whose processes use the read-write lock.
type rwWorld struct {
	*testing.T
	*world.World
}

// play runs scene in a world of its own.
func play(t *testing.T, scene func(w *rwWorld)) {
	t.Helper()
	world.Play(t, func(t *testing.T, w *world.World) { scene(&rwWorld{t, w}) })
}

// process starts a process and returns its view of the lock.
func (w *rwWorld) process(options ...lease.Option) *rwlock.RWMutex {
	_, m := w.apart(options...)
	return m
}

// apart does what process does, and also returns the process's network.
func (w *rwWorld) apart(options ...lease.Option) (*redistest.FaultProxy, *rwlock.RWMutex) {
	w.Helper()
	p := w.Process()
	return p.Net, p.RWMutex(name, options...)
}

// got fails the test unless a call gave a lease.
func (w *rwWorld) got(l *lease.Lease, err error) *lease.Lease {
	w.Helper()
	if err != nil {
		w.Fatalf("at %v: %v", w.Now(), err)
	}
	return l
}

// refused fails the test unless a call gave an error that matches the targets.
func (w *rwWorld) refused(l *lease.Lease, err error, targets ...error) {
	w.Helper()
	if l != nil {
		w.Errorf("at %v: a lease, want %v", w.Now(), targets)
	}
	for _, target := range targets {
		if !errors.Is(err, target) {
			w.Errorf("at %v: error %v, want one that matches %q", w.Now(), err, target)
		}
	}
}

// wantFields fails the test unless these, and no others, are the lock's fields.
func (w *rwWorld) wantFields(want ...string) {
	w.Helper()
	slices.Sort(want)
	if got := w.Holders(name); !slices.Equal(got, want) {
		w.Errorf("at %v: fields\n got %q\nwant %q", w.Now(), got, want)
	}
}

// wantTTL fails the test unless the key's time to live is d; -2: no key.
func (w *rwWorld) wantTTL(key string, d time.Duration) {
	w.Helper()
	if got := w.PTTL(key); got != d {
		w.Errorf("at %v: PTTL %s is %v, want %v", w.Now(), key, got, d)
	}
}

const gone = time.Duration(-2)

// wantMarks fails the test unless exactly r readers and wr writers have marks.
func (w *rwWorld) wantMarks(r, wr int64) {
	w.Helper()
	gotR, gotW, all := w.RDB.ZCard(w.Context(), readers).Val(), w.RDB.ZCard(w.Context(), writers).Val(), w.RDB.ZCard(w.Context(), waiting).Val()
	if gotR != r || gotW != wr || all != r+wr {
		w.Errorf("at %v: marks of %d readers and %d writers, %d in all; want %d and %d", w.Now(), gotR, gotW, all, r, wr)
	}
}

// timeout is the key of an owner's i-th read hold.
func timeout(l *lease.Lease, i int) string {
	return fmt.Sprintf("%s%s:rwlock_timeout:%d", prefix, l.Owner(), i)
}

// begin calls f on a goroutine of its own, and returns when it waits or is done.
func (w *rwWorld) begin(f func(context.Context) (*lease.Lease, error)) *world.Attempt {
	return w.beginWith(w.Context(), f)
}

func (w *rwWorld) beginWith(ctx context.Context, f func(context.Context) (*lease.Lease, error)) *world.Attempt {
	a := w.Try(func() (*lease.Lease, error) { return f(ctx) })
	synctest.Wait()
	return a
}

// result returns the lease of a call that must have succeeded. It does not wait for ever: a holder
// that renews its lease could keep the call waiting.
func (w *rwWorld) result(c *world.Attempt) *lease.Lease {
	w.Helper()
	return w.got(c.Result())
}

// wantPending fails the test unless all the calls wait, or, if want is false, none of them waits.
func (w *rwWorld) wantPending(want bool, calls ...*world.Attempt) {
	w.Helper()
	for i, c := range calls {
		if got := c.Pending(); got != want {
			w.Errorf("at %v: call %d pending: %v, want %v (%v)", w.Now(), i, got, want, c.Err)
		}
	}
}

// sorted returns the words of text in order.
func sorted(text string) string {
	words := strings.Fields(text)
	slices.Sort(words)
	return strings.Join(words, " ")
}
