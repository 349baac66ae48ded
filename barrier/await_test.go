// These tests show what the parties of a barrier are told, on virtual time.

package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/barrier"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

func TestAwait_Trips(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		var last int64
		for range 3 {
			all := come(w, 3, p, q)
			waits(t, all...)
			if s, err := q.Barrier(name, 3).State(t.Context()); err != nil || s.Parties != 3 || s.Arrived != 2 || s.Generation <= last {
				t.Errorf("state %+v, %v", s, err)
			}
			all = append(all, come(w, 3, q)...)
			a, b, c := told(t, all[0], soon), told(t, all[1], soon), told(t, all[2], soon)
			if a.trip.Arrival != 2 || b.trip.Arrival != 1 || c.trip.Arrival != 0 {
				t.Errorf("arrivals %d, %d, %d, want 2, 1, 0", a.trip.Arrival, b.trip.Arrival, c.trip.Arrival)
			}
			g := agree(t, a, b, c)
			if s, err := p.Barrier(name, 3).State(t.Context()); g <= last || err != nil || s != (barrier.State{Generation: g}) {
				t.Errorf("generation %d after %d: state %+v, %v", g, last, s, err)
			}
			last = g
		}
		alone := w.Process() // one party waits for nobody, and costs one request
		trips(t, soon, come(w, 1, alone)...)
		world.Equal(t, alone.Runs(""), 1, "%d requests")
	})
}

// A place is renewed for as long as its party waits.
func TestAwait_WaitsForLong(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		first := come(w, 2, p)
		w.At(2 * time.Minute)
		waits(t, first...)
		trips(t, soon, append(first, come(w, 2, q)...)...)
		if n := p.Runs(world.BarrierRenewRun); n < 11 || n > 13 {
			t.Errorf("%d renewals in 2 minutes", n)
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
		trips(t, poll, come(w, 2, p, q)...)
		first := come(w, 3, p)
		if broke, err := q.Barrier(name, 3).Reset(t.Context()); !broke || err != nil {
			t.Errorf("reset: %v, %v", broke, err)
		}
		told(t, first[0], poll, holdfast.ErrBroken)
	})
}

// errEnded is the cause of the end of a ctx.
var errEnded = errors.New("ended")

// One of two parties that wait for a third leaves, dies, or loses its place; or Redis loses all. Both
// are told, in time, and whoever comes next begins a generation that knows nothing of that.
func TestAwait_Ends(t *testing.T) {
	const at, lease = 500 * time.Millisecond, 3 * time.Second
	type end struct {
		from, to time.Duration // when the party is told
		errs     []error
	}
	broken := end{at, at + soon, []error{holdfast.ErrBroken}}
	for what, tc := range map[string]struct {
		event        func(w *world.World, p, q *world.Process, leave context.CancelCauseFunc)
		first, other end
	}{
		"it leaves": {func(_ *world.World, _, _ *world.Process, leave context.CancelCauseFunc) { leave(errEnded) },
			end{at, at + soon, []error{context.Canceled, errEnded, holdfast.ErrBusy}}, broken},
		"it is reset": {func(w *world.World, _, q *world.Process, _ context.CancelCauseFunc) {
			for _, want := range []bool{true, false} {
				if broke, err := q.Barrier(name, 3).Reset(w.T.Context()); broke != want || err != nil {
					w.T.Errorf("reset: %v, %v, want %v", broke, err, want)
				}
			}
		}, broken, broken},
		// It reaches nobody, so it learns that nobody knows.
		"its process dies": {func(_ *world.World, p, _ *world.Process, _ context.CancelCauseFunc) { p.Unplug(true) },
			end{lease - time.Second, lease + 3*time.Second + soon, []error{holdfast.ErrLost, holdfast.ErrUnknown}},
			end{lease, lease + soon, []error{holdfast.ErrBroken}}},
		"its Client is closed": {func(_ *world.World, p, _ *world.Process, _ context.CancelCauseFunc) { p.Close() },
			end{at, at + soon, []error{holdfast.ErrClosed}}, end{at, lease + soon, []error{holdfast.ErrBroken}}},
		"its place is lost": {func(w *world.World, _, _ *world.Process, _ context.CancelCauseFunc) { w.Mini.Del(places) },
			end{at, 2 * time.Second, []error{holdfast.ErrLost, holdfast.ErrBroken}}, end{at, 2 * time.Second, []error{holdfast.ErrBroken}}},
		"Redis loses all": {func(w *world.World, _, _ *world.Process, _ context.CancelCauseFunc) { w.Mini.FlushAll() },
			end{at, 2 * time.Second, []error{holdfast.ErrUnknown}}, end{at, 2 * time.Second, []error{holdfast.ErrUnknown}}},
		// It says so after 3 s. Its place is over with its lease.
		"it leaves, and Redis does not answer": {func(_ *world.World, p, _ *world.Process, leave context.CancelCauseFunc) {
			p.Unplug(true)
			leave(errEnded)
		}, end{at + 3*time.Second, at + 3*time.Second + soon, []error{context.Canceled, holdfast.ErrUnknown}},
			end{lease, lease + soon, []error{holdfast.ErrBroken}}},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				ctx, leave := context.WithCancelCause(t.Context())
				first := await(ctx, w, p.Barrier(name, 3, barrier.Lease(lease)))
				other := come(w, 3, q)[0]
				w.At(at)
				tc.event(w, p, q, leave)
				for who, c := range []<-chan answer{first, other} {
					want := []end{tc.first, tc.other}[who]
					a := told(t, c, 10*time.Second, want.errs...)
					world.Within(t, fmt.Sprintf("party %d was told", who), a.at, want.from, want.to)
					if errors.Is(a.err, holdfast.ErrBroken) != (want.errs[len(want.errs)-1] == holdfast.ErrBroken) {
						t.Errorf("party %d was told %v", who, a.err)
					}
					if who == 1 && errors.Is(a.err, holdfast.ErrLost) {
						t.Errorf("told %v, but its own place was not lost", a.err)
					}
				}
				p.Unplug(false)
				leave(errEnded)
				told(t, await(ctx, w, q.Barrier(name, 2)), soon, context.Canceled, errEnded) // it never comes
				trips(t, 2*time.Second, come(w, 2, q, w.Process())...)
			})
		})
	}
}

// The place of one that has left without an answer goes in the background, as soon as Redis is there again.
func TestAwait_LeavesInTheBackground(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		ctx, cancel := context.WithCancel(t.Context())
		first := await(ctx, w, p.Barrier(name, 3))
		second := come(w, 3, q)
		p.Unplug(true)
		cancel()
		told(t, first, 4*time.Second, context.Canceled, holdfast.ErrUnknown)
		waits(t, second...)
		p.Unplug(false)
		told(t, second[0], 2*time.Second, holdfast.ErrBroken)
	})
}

// What is refused changes nothing: a wrong argument, another number of parties, a right that is missing.
func TestAwait_Refused(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		refused := func(what string, b *barrier.Barrier, want error) {
			_, awaited := b.Await(t.Context())
			_, state := b.State(t.Context())
			_, reset := b.Reset(t.Context())
			for _, err := range []error{awaited, state, reset} {
				if !errors.Is(err, want) || errors.Is(err, holdfast.ErrUnknown) {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		refused("no parties", p.Barrier(name, 0), holdfast.ErrBadArgument)
		refused("too many parties", p.Barrier(name, barrier.MaxParties+1), holdfast.ErrBadArgument)
		refused("no name", p.Barrier("", 2), holdfast.ErrBadArgument)
		refused("a short lease", p.Barrier(name, 2, barrier.Lease(time.Millisecond)), holdfast.ErrBadArgument)
		world.Equal(t, p.Runs(""), 0, "%d requests")
		first := come(w, 2, p)
		for _, n := range []int{1, 3} {
			told(t, come(w, n, q)[0], soon, holdfast.ErrParties)
		}
		q.Each(func(world.Sending) redistest.Fault {
			return redistest.ReplyError("NOPERM No permissions to access a key")
		})
		refused("no rights", q.Barrier(name, 2), holdfast.ErrDenied)
		q.Each(nil)
		waits(t, first...)
		trips(t, soon, append(first, come(w, 2, q)...)...)
	})
}

// Shutdown refuses those that come, and waits for those that wait.
func TestAwait_Shutdown(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		first := come(w, 2, p)
		done := make(chan error, 1)
		go func() { done <- p.Shutdown(t.Context()) }()
		synctest.Wait()
		told(t, come(w, 2, p)[0], soon, holdfast.ErrClosed)
		waits(t, first...)
		trips(t, soon, append(first, come(w, 2, q)...)...)
		redistest.Check(t, <-done)
	})
}

// Three generations of many parties in several processes. Those of a process share what they ask.
func TestAwait_ManyParties(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		const processes, each = 3, 30
		var all []<-chan [3]answer
		for range processes {
			b := w.Process().Barrier(name, processes*each)
			for range each {
				c := make(chan [3]answer, 1)
				all = append(all, c)
				go func() {
					var told [3]answer
					for i := range told {
						trip, err := b.Await(t.Context())
						told[i] = answer{trip, err, w.Now()}
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
		if a, b, c := agree(t, generations[0]...), agree(t, generations[1]...), agree(t, generations[2]...); a >= b || b >= c {
			t.Errorf("generations %d, %d, %d", a, b, c)
		}
		for _, p := range w.Processes {
			if looks := p.Runs(world.BarrierLookRun); looks > 3*(each+5) {
				t.Errorf("%d looks for three generations", looks)
			}
		}
	})
}
