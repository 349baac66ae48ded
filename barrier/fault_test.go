// These tests show what holds when requests are lost or late, when a party's ctx ends at any moment, and when a server
// takes over that has forgotten the last writes. In internal/test/faults each operation meets each mishap of a network.

package barrier_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/barrier"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// If it is not answered before its place is over, Redis does not know it any more. It is not sent again:
// it would be another arrival, in the next generation.
func TestAwait_AnArrivalIsNotSentWhenItsPlaceIsOver(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		first := come(w, 2, p)
		if s, err := q.Barrier(name, 2).State(t.Context()); err != nil || s.Arrived != 1 { // q has a connection
			t.Errorf("%+v, %v", s, err)
		}
		q.On(world.BarrierEnterRun, 1, redistest.CloseAfterExec)
		q.Net.Refuse(true)
		last := await(t.Context(), w, q.Barrier(name, 2, barrier.Lease(3*time.Second)))
		told(t, first[0], soon)
		w.At(5 * time.Second)
		next := come(w, 2, p)
		q.Unplug(false)
		told(t, last, 5*time.Second, holdfast.ErrUnknown)
		waits(t, next...)
		trips(t, soon, append(next, come(w, 2, p)...)...)
	})
}

// A party that left before its arrival reached Redis does not arrive later.
func TestAwait_LateArrival(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		p.On(world.BarrierEnterRun, 1, redistest.Delay(800*time.Millisecond))
		ctx := redistest.Within(t, 100*time.Millisecond)
		told(t, await(ctx, w, p.Barrier(name, 2)), time.Second, context.DeadlineExceeded, holdfast.ErrUnknown)
		first := come(w, 2, q)
		w.At(3 * time.Second)
		waits(t, first...)
		if s, err := q.Barrier(name, 2).State(t.Context()); err != nil || s.Arrived != 1 {
			t.Errorf("%+v, %v", s, err)
		}
		trips(t, soon, append(first, come(w, 2, q)...)...)
	})
}

// If a party's ctx ends just as the last party comes, what it is told is what the others are told.
func TestAwait_CancelledAtEachMoment(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		tripped, broken := 0, 0
		for at := time.Duration(0); at < 60*time.Millisecond; at += 2 * time.Millisecond {
			p, q := w.FarAway(4*time.Millisecond), w.Process()
			ctx, cancel := context.WithTimeout(t.Context(), at)
			first := await(ctx, w, p.Barrier(name, 2))
			time.Sleep(50 * time.Millisecond)
			other, leave := context.WithTimeout(t.Context(), time.Second)
			last := await(other, w, q.Barrier(name, 2))
			a, b := <-first, <-last
			switch {
			case a.err == nil:
				agree(t, a, b)
				tripped++
			case errors.Is(a.err, holdfast.ErrUnknown):
			case b.err == nil:
				t.Fatalf("cancelled after %v: told %v, the other that it has tripped", at, a.err)
			default:
				world.WantErr(t, a.err, context.DeadlineExceeded)
				broken++
			}
			time.Sleep(2 * time.Second)
			cancel()
			leave()
			p.Close()
			q.Close()
		}
		if tripped == 0 || broken == 0 {
			t.Errorf("%d tripped, %d broken: want both", tripped, broken)
		}
	})
}

// The ctx ends after the last party has come, and before Await has heard of it: it returns nil.
func TestAwait_TrippedBeforeItsCtxEnded(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		p.Mute()
		defer p.Unmute()
		ctx, cancel := context.WithCancel(t.Context())
		first := await(ctx, w, p.Barrier(name, 2))
		last := told(t, come(w, 2, q)[0], soon)
		waits(t, first)
		cancel()
		agree(t, last, told(t, first, soon))
	})
}

// No request reaches Redis for longer than a lease: the party arrives when one does.
func TestAwait_OutOfReach(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		p.Net.Refuse(true)
		first := come(w, 1, p)
		w.At(2 * time.Minute)
		waits(t, first...)
		p.Net.Refuse(false)
		trips(t, 5*time.Second, first...)
	})
}

// forgets has a server take over on which everything is as it was when the values were taken.
func forgets(w *world.World, values map[string]redistest.Value) { w.Mini.SetValues(values, time.Now()) }

// A party waits alone in a generation that the new master has never seen. Others begin one there. The
// first has not tripped: its party goes on nowhere, and learns that nobody knows.
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
				if errors.Is(a.err, holdfast.ErrBroken) || a.trip.Generation == 0 {
					t.Errorf("told %+v, %v", a.trip, a.err)
				}
				waits(t, others...)
				trips(t, soon, append(others, come(w, 3, p)...)...)
			})
		})
	}
}

// A process is cut off for longer than its lease. Meanwhile its generation trips, and others begin the
// next. Its party learns that it has tripped.
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

// The same, and the process of the party that comes had a part in none before. But the party had learnt
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
