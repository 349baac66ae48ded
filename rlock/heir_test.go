// This file is about a hold that is passed on when the last lease on it was a fixed one.

package rlock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// A renewed lease that follows a fixed lease on the same hold is renewed.
func TestTheHeirOfAFixedLeaseIsRenewed(t *testing.T) {
	play(t, "after the time of a renewal", func(t *testing.T, w *world.World) {
		p := w.Process()
		l, turns := cohort(p, 1, holdfast.Renewed(3*time.Second), holdfast.Cohort(1000, time.Hour))
		inner := w.Lock(l.Context(t.Context()), p.Mutex(world.Name, holdfast.Fixed(20*time.Second)))
		w.Release(l) // only the fixed lease is left
		w.At(w.Now() + 5*time.Second)
		owner := inner.Owner()
		w.Release(inner)
		wantRenewed(w, <-turns, owner)
	})
	play(t, "at once", func(t *testing.T, w *world.World) {
		p := w.Process()
		l, turns := cohort(p, 1)
		fixed := p.Mutex(world.Name, holdfast.Fixed(time.Minute))
		inner := w.Lock(l.Context(t.Context()), fixed)
		w.Release(l)
		inmost := w.Lock(inner.Context(t.Context()), fixed)
		w.Release(inmost)
		owner := inner.Owner()
		w.Release(inner)
		wantRenewed(w, <-turns, owner)
	})
}

// wantRenewed fails the test unless the hold of that owner was passed on to l and is still held
// five minutes later.
func wantRenewed(w *world.World, l *holdfast.Lease, owner holdfast.Owner) {
	w.T.Helper()
	if l.Owner() != owner {
		w.T.Fatal("not passed on")
	}
	w.At(w.Now() + 5*time.Minute)
	if err := l.Err(); err != nil {
		w.T.Fatalf("a renewed lease, with Redis in reach: %v", err)
	}
	w.Release(l)
}
