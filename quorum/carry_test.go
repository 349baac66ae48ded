// What a context carries of a lease on a Quorum, how a try ends with its context, and what a failed
// Lock returns.

package quorum_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

func TestABareContextCarriesNoLeaseOfAQuorum(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.process()
		q := p.quorum()
		l := w.lock(q)
		bare := lease.Bare(l.Context(t.Context()))
		if _, ok := q.LeaseFrom(bare); ok {
			t.Error("Bare carries the quorum's lease")
		}
		if in, err := q.TryLock(bare); err == nil {
			t.Error("TryLock with Bare re-entered the quorum")
			redises.Release(t, in)
		}
		redises.Release(t, l)
	})
}

// A try that its context ends in the middle says so, with the context's cause.
func TestATryOfAQuorumThatItsContextEndsSaysSo(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.began()
		for i := range p.Nets {
			p.Unplug(i)
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
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.process()
		l := w.lock(p.quorum())
		parent, cancel := context.WithCancel(t.Context())
		ctx := l.Context(parent)
		cancel()
		in, err := p.quorum().Lock(ctx)
		world.WantErr(t, err, context.Canceled)
		if err == nil {
			redises.Release(t, in)
		}
		redises.WantLive(t, l, l.Context(t.Context()))
		redises.Release(t, l)
		_, err = p.quorum().Lock(ctx)
		world.WantErr(t, err, holdfast.ErrReleased)
	})
}

// A program may defer Release before it looks at the error of Lock.
func TestADeferredReleaseAfterAFailedLock(t *testing.T) {
	want := (*holdfast.Lease)(nil).Release(t.Context()).Error()
	l, err := holdfast.NewQuorum("q", nil).Lock(t.Context())
	if err == nil || l.Release(t.Context()).Error() != want || l.Err() == nil || !l.Deadline().IsZero() {
		t.Errorf("%v, %v", err, l.Release(t.Context()))
	}
}
