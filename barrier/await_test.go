// These tests show what the parties of a barrier are told, on virtual time.

package barrier_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/barrier"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

const soon = 10 * time.Millisecond

func TestAwait_Trips(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		var last int64
		for range 3 {
			first := await(t.Context(), w, p.Barrier(name, 3))
			second := await(t.Context(), w, q.Barrier(name, 3))
			waits(t, first)
			waits(t, second)
			if s, err := q.Barrier(name, 3).State(t.Context()); err != nil || s.Parties != 3 || s.Arrived != 2 || s.Generation <= last {
				t.Errorf("state %+v, %v", s, err)
			}
			third := await(t.Context(), w, q.Barrier(name, 3))
			a, b, c := told(t, first, soon), told(t, second, soon), told(t, third, soon)
			if a.trip.Arrival != 2 || b.trip.Arrival != 1 || c.trip.Arrival != 0 {
				t.Errorf("arrivals %d, %d, %d, want 2, 1, 0", a.trip.Arrival, b.trip.Arrival, c.trip.Arrival)
			}
			if g := agree(t, a, b, c); g <= last {
				t.Errorf("generation %d after %d", g, last)
			} else {
				last = g
			}
			if s, err := p.Barrier(name, 3).State(t.Context()); err != nil || s != (barrier.State{Generation: last}) {
				t.Errorf("state %+v, %v", s, err)
			}
		}
	})
}

// One party waits for nobody, and costs one request.
func TestAwait_OneParty(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		agree(t, told(t, await(t.Context(), w, p.Barrier(name, 1)), soon))
		if n := p.Runs(""); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

// A place is renewed for as long as its party waits.
func TestAwait_WaitsForLong(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		first := await(t.Context(), w, p.Barrier(name, 2))
		w.At(10 * time.Minute)
		waits(t, first)
		second := await(t.Context(), w, q.Barrier(name, 2))
		agree(t, told(t, first, soon), told(t, second, soon))
		if n := p.Runs(world.BarrierRenewRun); n < 59 || n > 62 {
			t.Errorf("%d renewals in 10 minutes", n)
		}
	})
}

// No message is needed: a poll finds that the generation has tripped, or broken.
func TestAwait_WithoutMessages(t *testing.T) {
	const poll = 1250*time.Millisecond + soon
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		p.Mute()
		defer p.Unmute()
		first := await(t.Context(), w, p.Barrier(name, 2))
		last := told(t, await(t.Context(), w, q.Barrier(name, 2)), soon)
		agree(t, told(t, first, poll), last)
		first = await(t.Context(), w, p.Barrier(name, 3))
		ctx, cancel := context.WithCancel(t.Context())
		second := await(ctx, w, q.Barrier(name, 3))
		cancel()
		told(t, second, soon, context.Canceled)
		told(t, first, poll, holdfast.ErrBroken)
	})
}

// A party that leaves breaks its generation, at once. The next one starts clean.
func TestAwait_Cancelled(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		b := p.Barrier(name, 4)
		others := []<-chan answer{await(t.Context(), w, b), await(t.Context(), w, b)}
		ended := errors.New("ended")
		ctx, leave := context.WithCancelCause(t.Context())
		leaver := await(ctx, w, q.Barrier(name, 4))
		w.At(time.Second)
		leave(ended)
		if a := told(t, leaver, soon, context.Canceled, ended, holdfast.ErrBusy); isBroken(a) {
			t.Errorf("the party that left was told %v", a.err)
		}
		for _, c := range others {
			told(t, c, soon, holdfast.ErrBroken)
		}
		first := await(t.Context(), w, q.Barrier(name, 2))                        // for as many as one likes
		told(t, await(ctx, w, p.Barrier(name, 2)), soon, context.Canceled, ended) // it never came
		waits(t, first)
		agree(t, told(t, await(t.Context(), w, p.Barrier(name, 2)), soon), told(t, first, soon))
	})
}

func TestReset(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		for _, want := range []bool{false, true, false} {
			var first <-chan answer
			if want {
				first = await(t.Context(), w, p.Barrier(name, 2))
			}
			if broke, err := q.Barrier(name, 2).Reset(t.Context()); broke != want || err != nil {
				t.Errorf("reset: %v, %v, want %v", broke, err, want)
			}
			if want {
				told(t, first, soon, holdfast.ErrBroken)
			}
		}
	})
}

// A deadline is the end of a wait as well.
func TestAwait_Deadline(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		first := await(t.Context(), w, p.Barrier(name, 3))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		second := await(ctx, w, q.Barrier(name, 3))
		if a := told(t, second, 2*time.Second, context.DeadlineExceeded); a.at < time.Second || a.at > time.Second+soon {
			t.Errorf("told at %v", a.at)
		}
		told(t, first, soon, holdfast.ErrBroken)
	})
}

// A party whose process dies breaks its generation when its lease is over.
func TestAwait_Killed(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		lease := barrier.Lease(3 * time.Second)
		dead := await(t.Context(), w, p.Barrier(name, 3, lease))
		other := await(t.Context(), w, q.Barrier(name, 3))
		w.At(500 * time.Millisecond)
		p.Unplug(true)
		a := told(t, other, 5*time.Second, holdfast.ErrBroken)
		world.Within(t, "the others were told", a.at, 3*time.Second, 3*time.Second+soon)
		if errors.Is(a.err, holdfast.ErrLost) {
			t.Errorf("told %v, but its own place was not lost", a.err)
		}
		// The dead one would learn that nobody knows: it reaches nobody.
		told(t, dead, 10*time.Second, holdfast.ErrLost, holdfast.ErrUnknown)
		p.Unplug(false)
		first := await(t.Context(), w, p.Barrier(name, 2)) // p dials again within 1.2 s
		agree(t, told(t, await(t.Context(), w, q.Barrier(name, 2)), 2*time.Second), told(t, first, 2*time.Second))
	})
}

// If all that wait have died, the next party finds that, and begins the next generation.
func TestAwait_AllKilled(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		dead := await(t.Context(), w, p.Barrier(name, 2, barrier.Lease(3*time.Second)))
		w.At(500 * time.Millisecond)
		p.Unplug(true)
		told(t, dead, 10*time.Second, holdfast.ErrLost)
		first := await(t.Context(), w, q.Barrier(name, 2))
		waits(t, first)
		agree(t, told(t, await(t.Context(), w, q.Barrier(name, 2)), soon), told(t, first, soon))
		p.Unplug(false)
	})
}

// A place that was lost is told as what became of the generation, once Redis can be reached.
func TestAwait_PlaceLost(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		first := await(t.Context(), w, p.Barrier(name, 3, barrier.Lease(3*time.Second)))
		second := await(t.Context(), w, q.Barrier(name, 3))
		w.Mini.Del(places)
		told(t, first, 2*time.Second, holdfast.ErrLost, holdfast.ErrBroken)
		told(t, second, soon, holdfast.ErrBroken)
	})
}

// Redis has lost its data: nobody knows how the generation would have ended.
func TestAwait_DataLost(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		first := await(t.Context(), w, p.Barrier(name, 2))
		w.Mini.FlushAll()
		told(t, first, 2*time.Second, holdfast.ErrUnknown)
		first = await(t.Context(), w, p.Barrier(name, 2))
		agree(t, told(t, await(t.Context(), w, p.Barrier(name, 2)), soon), told(t, first, soon))
	})
}

// Parties that disagree about their number are told, and change nothing.
func TestAwait_OtherParties(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		first := await(t.Context(), w, p.Barrier(name, 2))
		for _, n := range []int{1, 3} {
			told(t, await(t.Context(), w, q.Barrier(name, n)), soon, holdfast.ErrParties)
		}
		waits(t, first)
		agree(t, told(t, await(t.Context(), w, q.Barrier(name, 2)), soon), told(t, first, soon))
	})
}

func TestBadArguments(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		for what, b := range map[string]*barrier.Barrier{
			"no parties":       p.Barrier(name, 0),
			"too many parties": p.Barrier(name, barrier.MaxParties+1),
			"no name":          p.Barrier("", 2),
			"a short lease":    p.Barrier(name, 2, barrier.Lease(time.Millisecond)),
		} {
			_, awaited := b.Await(t.Context())
			_, state := b.State(t.Context())
			_, reset := b.Reset(t.Context())
			for _, err := range []error{awaited, state, reset} {
				if !errors.Is(err, holdfast.ErrBadArgument) {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		if n := p.Runs(""); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// Close ends the wait. The place is over with its lease, and breaks the generation.
func TestAwait_Close(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		first := await(t.Context(), w, p.Barrier(name, 3, barrier.Lease(3*time.Second)))
		second := await(t.Context(), w, q.Barrier(name, 3))
		p.Close()
		told(t, first, soon, holdfast.ErrClosed)
		told(t, second, 3*time.Second+soon, holdfast.ErrBroken)
		told(t, await(t.Context(), w, p.Barrier(name, 3)), soon, holdfast.ErrClosed)
	})
}

// Shutdown refuses those that come, and waits for those that wait.
func TestAwait_Shutdown(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		first := await(t.Context(), w, p.Barrier(name, 2))
		done := make(chan error, 1)
		go func() { done <- p.Shutdown(t.Context()) }()
		synctest.Wait()
		told(t, await(t.Context(), w, p.Barrier(name, 2)), soon, holdfast.ErrClosed)
		waits(t, first)
		agree(t, told(t, await(t.Context(), w, q.Barrier(name, 2)), soon), told(t, first, soon))
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Three generations of very many parties in several processes.
func TestAwait_ManyParties(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		const processes, each = 5, 40
		var all []<-chan []answer
		for range processes {
			b := w.Process().Barrier(name, processes*each)
			for range each {
				c := make(chan []answer, 1)
				all = append(all, c)
				go func() {
					var told []answer
					for range 3 {
						trip, err := b.Await(t.Context())
						told = append(told, answer{trip, err, w.Now()})
					}
					c <- told
				}()
			}
		}
		var generations [3][]answer
		for _, c := range all {
			for i, a := range <-c {
				generations[i] = append(generations[i], a)
			}
		}
		var last int64
		for _, g := range generations {
			number := agree(t, g...)
			if number <= last {
				t.Errorf("generation %d after %d", number, last)
			}
			last = number
		}
		for _, p := range w.Processes {
			if looks := p.Runs(world.BarrierLookRun); looks > 3*(each+5) {
				t.Errorf("%d looks for three generations", looks)
			}
		}
	})
}
