// What tests of barriers add to the world of all tests: parties, and what each was told.

package barrier_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/barrier"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

const (
	name   = "phase"
	places = "holdfast_barrier_places:{phase}"
	soon   = 10 * time.Millisecond
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
		for _, k := range w.Mini.Keys() {
			if ttl := w.Mini.TTL(k); ttl <= 0 {
				t.Errorf("%s stands without an expiry", k)
			}
			if strings.HasPrefix(k, "holdfast_barrier_places") {
				all, _ := w.Mini.SortedSet(k)
				for owner, score := range all {
					if !strings.HasPrefix(owner, "left:") && int64(score) > time.Now().UnixMilli() {
						t.Errorf("the place of %s is left", owner)
					}
				}
			}
			if strings.HasPrefix(k, "holdfast_barrier") {
				w.Mini.Del(k)
			}
		}
	})
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

// come has a party for each of the processes come to a barrier for n, one after the other.
func come(w *world.World, n int, processes ...*world.Process) (all []<-chan answer) {
	for _, p := range processes {
		all = append(all, await(w.T.Context(), w, p.Barrier(name, n)))
	}
	return all
}

// waits fails the test if one of the parties has been told something.
func waits(t *testing.T, all ...<-chan answer) {
	t.Helper()
	synctest.Wait()
	for _, c := range all {
		select {
		case a := <-c:
			t.Fatalf("told %+v, %v: it should wait", a.trip, a.err)
		default:
		}
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

// trips fails the test unless the parties are told within d that one generation has tripped, and have
// the arrivals from 0 on among them. It returns the generation.
func trips(t *testing.T, d time.Duration, all ...<-chan answer) int64 {
	t.Helper()
	answers := make([]answer, len(all))
	for i, c := range all {
		answers[i] = told(t, c, d)
	}
	return agree(t, answers...)
}

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
	if len(slices.Compact(slices.Clone(arrivals))) != len(all) || arrivals[0] != 0 || arrivals[len(all)-1] != len(all)-1 {
		t.Errorf("the arrivals are %v", arrivals)
	}
	return all[0].trip.Generation
}
