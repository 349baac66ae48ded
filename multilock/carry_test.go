// What a context carries of leases on several locks, how a wait for them ends, and what a failed Lock
// returns.

package multilock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
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
		ml := w.all(m, t.Context())
		if _, ok := m.LeaseFrom(lease.Bare(ml.Context(t.Context()))); ok {
			t.Error("Bare carries the MultiLock's lease")
		}
		release(t, ml)
	})
}

func TestAWaitThatEndsBetweenTwoAttemptsSaysSo(t *testing.T) {
	play(t, 1, func(t *testing.T, w *redises) {
		p, q := w.process(), w.process()
		b := w.grab(q.clients[0].Mutex("b"))
		m := holdfast.NewMultiLock(p.clients[0].Mutex("a", holdfast.Fixed(100*time.Millisecond)), p.clients[0].Mutex("b"))
		for i := range 26 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second+time.Duration(i)*10*time.Millisecond)
			_, err := m.Lock(ctx)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
		}
		release(t, b)
	})
}

// A context of a lease on several locks does not stand for the same locks by another Client: a Lock
// with it would not re-enter.
func TestMultiLock_LeaseFromIsOfTheSameClients(t *testing.T) {
	play(t, 1, func(t *testing.T, w *redises) {
		p, other := w.process(), w.process()
		l := w.all(holdfast.NewMultiLock(p.clients[0].Mutex("a"), p.clients[0].Mutex("b")), t.Context())
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

// A try that its context ends in the middle says so, with the context's cause.
func TestATryOfAQuorumThatItsContextEndsSaysSo(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		p := w.began()
		for i := range p.nets {
			p.unplug(i)
		}
		why := errors.New("why it ends")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, why)
		defer cancel()
		_, err := p.quorum().TryLock(ctx)
		world.WantErr(t, err, context.DeadlineExceeded, why, holdfast.ErrNoQuorum)
	})
}

// A quorum is not re-entered with a context that has ended, though the lease that it carries lasts.
// A Mutex is not either.
func TestAQuorumIsNotReenteredWithAContextThatHasEnded(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		p := w.process()
		l := w.lock(p.quorum())
		parent, cancel := context.WithCancel(t.Context())
		ctx := l.Context(parent)
		cancel()
		in, err := p.quorum().Lock(ctx)
		world.WantErr(t, err, context.Canceled)
		if err == nil {
			release(t, in)
		}
		wantLive(t, l, l.Context(t.Context()))
		release(t, l)
		_, err = p.quorum().Lock(ctx)
		world.WantErr(t, err, holdfast.ErrReleased)
	})
}

// A program may defer Release before it looks at the error of Lock, whatever it locks.
func TestADeferredReleaseAfterAFailedLock(t *testing.T) {
	want := (*holdfast.Lease)(nil).Release(t.Context()).Error()
	all, err := holdfast.NewMultiLock().Lock(t.Context())
	if err == nil || all.Release(t.Context()).Error() != want || all.Err() == nil || !all.Deadline().IsZero() {
		t.Errorf("a MultiLease: %v, %v", err, all.Release(t.Context()))
	}
	most, err := holdfast.NewQuorum("q", nil).Lock(t.Context())
	if err == nil || most.Release(t.Context()).Error() != want || most.Err() == nil || !most.Deadline().IsZero() {
		t.Errorf("a QuorumLease: %v, %v", err, most.Release(t.Context()))
	}
}
