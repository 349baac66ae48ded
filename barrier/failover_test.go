// These tests show what parties are told when a server takes over that has forgotten the last writes.

package barrier_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/barrier"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// forgets has a server take over on which everything is as it was when the values were taken.
func forgets(w *world.World, values map[string]redistest.Value) { w.Mini.SetValues(values, time.Now()) }

// A party waits alone in a generation that the new master has never seen. Others begin one there. The
// first has not tripped: its party goes on nowhere, and is told that nobody knows.
func TestAwait_AGenerationThatTheNewMasterHasNeverSeen(t *testing.T) {
	for what, past := range map[string]int{"an empty server": 0, "one that remembers an earlier generation": 1} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				for range past {
					trips(t, soon, come(w, 2, p, q)...)
					time.Sleep(soon)
				}
				values := w.Mini.Values()
				alone := come(w, 3, p)
				time.Sleep(soon)
				forgets(w, values)
				others := come(w, 3, q, w.Process())
				a := told(t, alone[0], 2*time.Second, holdfast.ErrUnknown)
				if isBroken(a) || a.trip.Generation == 0 {
					t.Errorf("told %+v, %v", a.trip, a.err)
				}
				waits(t, others...)
				trips(t, soon, append(others, come(w, 3, p)...)...)
			})
		})
	}
}

// A process is cut off for longer than its lease. Meanwhile its generation trips, and others begin the
// next. Its party is told that it has tripped.
func TestAwait_CutOffWhileItTripped(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		ctx := t.Context()
		first := await(ctx, w, p.Barrier(name, 2, barrier.Lease(3*time.Second)))
		time.Sleep(soon) // it may have to connect first
		p.Unplug(true)
		last := told(t, come(w, 2, q)[0], soon)
		others := come(w, 3, q)
		w.At(3200 * time.Millisecond) // it asks until 6 s
		waits(t, first)
		if all, _ := w.Mini.SortedSet(places); len(all) != 2 { // with the one that tripped it
			t.Errorf("%v: its place should be gone", all)
		}
		p.Unplug(false)
		agree(t, last, told(t, first, 3*time.Second))
		trips(t, 3*time.Second, append(others, come(w, 3, p, w.Process())...)...)
	})
}

// On the new master a generation is open that has tripped long ago, and one party of it is missing. A
// party that comes does not complete it, but begins the next. So all parties are in step.
func TestAwait_AGenerationOfThePast(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q, r := w.Process(), w.Process(), w.Process()
		past := come(w, 3, p, q)
		values := w.Mini.Values()
		trips(t, soon, append(past, come(w, 3, r)...)...)
		time.Sleep(soon) // two have left
		last := trips(t, soon, come(w, 3, p, q, r)...)
		time.Sleep(soon)
		forgets(w, values)
		third := come(w, 3, r)
		waits(t, third...)
		if g := trips(t, soon, append(third, come(w, 3, p, q)...)...); g <= last {
			t.Errorf("generation %d after %d", g, last)
		}
		time.Sleep(lease.DefaultLease) // nobody renews the places that the new master remembers
	})
}

// The same, and the process of the party that comes had a part in none before. But the party was told
// that nobody knows of its generation, and that was a later one.
func TestAwait_AGenerationOfThePastAfterErrUnknown(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q, r := w.Process(), w.Process(), w.Process()
		past := come(w, 3, p, q)
		values := w.Mini.Values()
		trips(t, soon, append(past, come(w, 3, r)...)...)
		time.Sleep(soon)
		stranger := w.Process()
		alone := come(w, 3, stranger)
		forgets(w, values)
		unknown := told(t, alone[0], 2*time.Second, holdfast.ErrUnknown)
		third := come(w, 3, stranger)
		waits(t, third...)
		if g := trips(t, soon, append(third, come(w, 3, p, q)...)...); g <= unknown.trip.Generation {
			t.Errorf("generation %d after %d", g, unknown.trip.Generation)
		}
		time.Sleep(lease.DefaultLease)
	})
}
