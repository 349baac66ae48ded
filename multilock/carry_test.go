// What a context carries of leases on several locks, and how a wait for them ends.

package multilock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lease"
)

func TestABareContextCarriesNoLeaseOnSeveralLocks(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		p := w.process()
		q := p.quorum()
		l := w.lock(q)
		bare := lease.Bare(l.Context(t.Context()))
		if _, ok := q.LeaseFrom(bare); ok {
			t.Error("Bare carries the quorum's lease")
		}
		if in, err := q.TryLock(bare); err == nil {
			t.Error("TryLock with Bare re-entered the quorum")
			release(t, in)
		}
		release(t, l)
		m := holdfast.NewMultiLock(p.clients[0].Mutex("a"))
		ml, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.LeaseFrom(lease.Bare(ml.Context(t.Context()))); ok {
			t.Error("Bare carries the MultiLock's lease")
		}
		release(t, ml)
	})
}

func TestAWaitThatEndsBetweenTwoAttemptsSaysSo(t *testing.T) {
	play(t, 1, func(t *testing.T, w *redises) {
		p, q := w.process(), w.process()
		b, err := q.clients[0].Mutex("b").Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := holdfast.NewMultiLock(p.clients[0].Mutex("a", holdfast.Fixed(100*time.Millisecond)), p.clients[0].Mutex("b"))
		for i := range 40 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+time.Duration(i)*10*time.Millisecond)
			_, err := m.Lock(ctx)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
		}
		if err := b.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A context of a lease on several locks does not stand for the same locks by another Client: a Lock
// with it would not re-enter.
func TestMultiLock_LeaseFromIsOfTheSameClients(t *testing.T) {
	play(t, 1, func(t *testing.T, w *redises) {
		p, other := w.process(), w.process()
		l, err := holdfast.NewMultiLock(p.clients[0].Mutex("a"), p.clients[0].Mutex("b")).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx := l.Context(t.Context())
		for _, c := range []struct {
			a, b *holdfast.Client
			want bool
		}{
			{p.clients[0], p.clients[0], true},
			{p.clients[0], other.clients[0], false},
			{other.clients[0], other.clients[0], false},
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
				release(t, in)
			}
		}
		release(t, l)
	})
}
