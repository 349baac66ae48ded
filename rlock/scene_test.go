// What the scenes of this package share.

package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// play plays a scene as a subtest.
func play(t *testing.T, what string, scene func(t *testing.T, w *world.World)) {
	t.Helper()
	t.Run(what, func(t *testing.T) { world.Play(t, scene) })
}

// must ends the test on an error.
func must(t *testing.T, err error) { t.Helper(); redistest.Must(t, err) }

// granted waits for an attempt, and returns its lease.
func granted(t *testing.T, a *world.Attempt) *lease.Lease {
	t.Helper()
	l, err := a.Result()
	must(t, err)
	return l
}

// second returns the error of a call that also returns a lease.
func second(_ *holdfast.Lease, err error) error { return err }

func detach(t *testing.T, l *lease.Lease) lease.Owner {
	t.Helper()
	owner, err := l.Detach(t.Context())
	must(t, err)
	return owner
}

func attach(t *testing.T, m interface {
	Attach(context.Context, lease.Owner) (*lease.Lease, error)
}, owner lease.Owner) *lease.Lease {
	t.Helper()
	l, err := m.Attach(t.Context(), owner)
	must(t, err)
	return l
}

// twoBehind locks with m, so that there is a token, then has another process hold the lock, and two
// waiters of p behind it, one after the other. They have waited for 100 ms when it returns.
func twoBehind(w *world.World, p *world.Process, m lease.Locker) (held *lease.Lease, head, next *world.Attempt) {
	w.T.Helper()
	ctx := w.T.Context()
	w.Release(w.Lock(ctx, m))
	held = w.Lock(ctx, w.Process().MyLock)
	head = w.GoLock(ctx, m)
	synctest.Wait()
	next = w.GoLock(ctx, m)
	w.At(w.Now() + 100*time.Millisecond)
	return held, head, next
}

// wantQueued fails the test unless so many processes have a place in the queue.
func wantQueued(w *world.World, want int) {
	w.T.Helper()
	if n := w.RDB.ZCard(w.T.Context(), queueKey).Val(); int(n) != want {
		w.T.Errorf("at %v: %d places in the queue, want %d", w.Now(), n, want)
	}
}
