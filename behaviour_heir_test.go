// This file is about a hold that is passed on when the last lease on it was a fixed one.

package holdfast_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A renewed lease that follows a fixed lease on the same hold is renewed.
func TestTheHeirOfAFixedLeaseIsRenewed(t *testing.T) {
	t.Run("after the time of a renewal", func(t *testing.T) {
		play(t, func(t *testing.T, w *world) {
			p := w.process()
			l, turns := p.cohort(1, holdfast.Renewed(3*time.Second), holdfast.Cohort(1000, time.Hour))
			inner := w.lock(l.Context(t.Context()), p.Mutex(name, holdfast.Fixed(20*time.Second)))
			w.release(l) // only the fixed lease is left
			w.at(w.now() + 5*time.Second)
			owner := inner.Owner()
			w.release(inner)
			w.wantRenewed(<-turns, owner)
		})
	})
	t.Run("at once", func(t *testing.T) {
		play(t, func(t *testing.T, w *world) {
			p := w.process()
			l, turns := p.cohort(1)
			fixed := p.Mutex(name, holdfast.Fixed(time.Minute))
			inner := w.lock(l.Context(t.Context()), fixed)
			w.release(l)
			inmost := w.lock(inner.Context(t.Context()), fixed)
			w.release(inmost)
			owner := inner.Owner()
			w.release(inner)
			w.wantRenewed(<-turns, owner)
		})
	})
}

// wantRenewed fails the test unless the hold of that owner was passed on to l and is still held
// five minutes later.
func (w *world) wantRenewed(l *holdfast.Lease, owner holdfast.Owner) {
	w.t.Helper()
	if l.Owner() != owner {
		w.t.Fatal("not passed on")
	}
	w.at(w.now() + 5*time.Minute)
	if err := l.Err(); err != nil {
		w.t.Fatalf("a renewed lease, with Redis in reach: %v", err)
	}
	w.release(l)
}
