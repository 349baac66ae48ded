// What tests of barriers add to the world of all tests: parties, and what each was told.

package barrier_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/barrier"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

const (
	name    = "phase"
	record  = "holdfast_barrier:{phase}"
	places  = "holdfast_barrier_places:{phase}"
	channel = "holdfast_barrier_channel:{phase}"
)

// play is world.Play. At the end no place of a party may be left, and no key without an expiry. The
// record goes, so that whatever else is left shows.
func play(t *testing.T, scene func(t *testing.T, w *world.World)) {
	t.Helper()
	world.Play(t, func(t *testing.T, w *world.World) {
		scene(t, w)
		time.Sleep(soon) // parties leave in the background
		for _, p := range w.Processes {
			p.Close()
		}
		for _, owner := range placesLeft(w) {
			t.Errorf("the place of %s is left", owner)
		}
		for _, k := range w.Mini.Keys() {
			if ttl := w.Mini.TTL(k); ttl <= 0 {
				t.Errorf("%s stands without an expiry", k)
			}
			if strings.HasPrefix(k, "holdfast_barrier") {
				w.Mini.Del(k)
			}
		}
	})
}

// placesLeft returns the owners that have a place that is not over.
func placesLeft(w *world.World) (owners []string) {
	all, _ := w.Mini.SortedSet(places)
	for owner, score := range all {
		if !strings.HasPrefix(owner, "left:") && int64(score) > time.Now().UnixMilli() {
			owners = append(owners, owner)
		}
	}
	return owners
}

// answer is what one party was told.
type answer struct {
	trip barrier.Trip
	err  error
	at   time.Duration
}

// await has a party call Await on a goroutine of its own, and returns when it waits, or is done.
func await(ctx context.Context, w *world.World, b *barrier.Barrier) <-chan answer {
	c := make(chan answer, 1)
	go func() {
		trip, err := b.Await(ctx)
		c <- answer{trip, err, w.Now()}
	}()
	synctest.Wait()
	return c
}

// waits fails the test if the party has been told something.
func waits(t *testing.T, c <-chan answer) {
	t.Helper()
	synctest.Wait()
	select {
	case a := <-c:
		t.Fatalf("told %+v, %v: it should wait", a.trip, a.err)
	default:
	}
}

// told returns what the party was told, and fails the test if that is not known within d, or if it
// matches none of the errors; without errors: if it is not nil.
func told(t *testing.T, c <-chan answer, d time.Duration, targets ...error) answer {
	t.Helper()
	select {
	case a := <-c:
		if len(targets) == 0 && a.err != nil {
			t.Errorf("told %v, want nil", a.err)
		}
		world.WantErr(t, a.err, targets...)
		return a
	case <-time.After(d):
		t.Fatalf("told nothing for %v", d)
		return answer{}
	}
}

// agree fails the test unless the parties were told that one generation has tripped, and have the
// arrivals from 0 on among them. It returns the generation.
func agree(t *testing.T, all ...answer) int64 {
	t.Helper()
	var arrivals []int
	for _, a := range all {
		if a.err != nil || a.trip.Generation != all[0].trip.Generation || a.trip.Generation == 0 {
			t.Fatalf("told %+v, %v, another %+v", a.trip, a.err, all[0].trip)
		}
		arrivals = append(arrivals, a.trip.Arrival)
	}
	slices.Sort(arrivals)
	for i, got := range arrivals {
		if got != i {
			t.Errorf("the arrivals are %v", arrivals)
			break
		}
	}
	return all[0].trip.Generation
}

// isBroken reports whether a party was told that its generation has broken.
func isBroken(a answer) bool { return errors.Is(a.err, holdfast.ErrBroken) }
