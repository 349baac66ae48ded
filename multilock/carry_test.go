// What a context carries of leases on several locks, how a wait for them ends, and what a failed Lock
// returns.

package multilock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/lease"
)

func TestABareContextCarriesNoLeaseOnSeveralLocks(t *testing.T) {
	redises.Play(t, 3, func(t *testing.T, w *redises.World) {
		p := w.Process()
		m := holdfast.NewMultiLock(p.Clients[0].Mutex("a"))
		ml := lockAll(w, m, t.Context())
		if _, ok := m.LeaseFrom(lease.Bare(ml.Context(t.Context()))); ok {
			t.Error("Bare carries the MultiLock's lease")
		}
		redises.Release(t, ml)
	})
}

func TestAWaitThatEndsBetweenTwoAttemptsSaysSo(t *testing.T) {
	redises.Play(t, 1, func(t *testing.T, w *redises.World) {
		p, q := w.Process(), w.Process()
		b := w.Lock(q.Clients[0].Mutex("b"))
		m := holdfast.NewMultiLock(p.Clients[0].Mutex("a", holdfast.Fixed(100*time.Millisecond)), p.Clients[0].Mutex("b"))
		for i := range 26 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+time.Duration(i)*10*time.Millisecond)
			_, err := m.Lock(ctx)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
		}
		redises.Release(t, b)
	})
}

// A context of a lease on several locks does not stand for the same locks by another Client: a Lock
// with it would not re-enter.
func TestMultiLock_LeaseFromIsOfTheSameClients(t *testing.T) {
	redises.Play(t, 1, func(t *testing.T, w *redises.World) {
		p, other := w.Process(), w.Process()
		l := lockAll(w, holdfast.NewMultiLock(p.Clients[0].Mutex("a"), p.Clients[0].Mutex("b")), t.Context())
		ctx := l.Context(t.Context())
		for _, c := range []struct {
			a, b *holdfast.Client
			want bool
		}{
			{p.Clients[0], p.Clients[0], true},
			{p.Clients[0], other.Clients[0], false},
			{other.Clients[0], other.Clients[0], false},
		} {
			m := holdfast.NewMultiLock(c.b.Mutex("b"), c.a.Mutex("a"))
			if _, ok := m.LeaseFrom(ctx); ok != c.want {
				t.Errorf("found %v, want %v", ok, c.want)
			}
			in, err := m.TryLock(ctx)
			if (err == nil) != c.want {
				t.Error(err)
			}
			if err == nil {
				redises.Release(t, in)
			}
		}
		redises.Release(t, l)
	})
}

// A program may defer Release before it looks at the error of Lock.
func TestADeferredReleaseAfterAFailedLock(t *testing.T) {
	want := (*holdfast.Lease)(nil).Release(t.Context()).Error()
	l, err := holdfast.NewMultiLock().Lock(t.Context())
	if err == nil || l.Release(t.Context()).Error() != want || l.Err() == nil || !l.Deadline().IsZero() {
		t.Errorf("%v, %v", err, l.Release(t.Context()))
	}
}
