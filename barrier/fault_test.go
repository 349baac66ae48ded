// These tests show what holds when requests and replies are lost, late or doubled, and when a party's
// ctx ends at any moment.

package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

var faults = map[string]redistest.Fault{
	"reply lost": redistest.CloseAfterExec, "request lost": redistest.DropBefore, "half a reply": redistest.HalfReply,
	"sent twice": redistest.Duplicate, "silence": redistest.Silence, "late": redistest.Delay(900 * time.Millisecond),
}

// Whichever request or reply of whichever script is lost, doubled or late, each party is told of the
// same generation, with an arrival of its own. The next generation is not disturbed.
func TestAwait_LostReplies(t *testing.T) {
	for _, script := range []string{world.BarrierEnterRun, world.BarrierLookRun, world.BarrierReleaseRun, world.BarrierRenewRun} {
		for what, fault := range faults {
			t.Run(script+"/"+what, func(t *testing.T) {
				play(t, func(t *testing.T, w *world.World) {
					var last int64
					p, q := w.Process(), w.Process()
					for range 2 {
						p.On(script, 1, fault)
						q.On(script, 1, fault)
						first := await(t.Context(), w, p.Barrier(name, 3))
						second := await(t.Context(), w, p.Barrier(name, 3))
						time.Sleep(15 * time.Second)
						third := await(t.Context(), w, q.Barrier(name, 3))
						const long = 10 * time.Second
						g := agree(t, told(t, first, long), told(t, second, long), told(t, third, long))
						if g <= last {
							t.Errorf("generation %d after %d", g, last)
						}
						last = g
					}
					time.Sleep(10 * time.Second) // releases are sent again
				})
			})
		}
	}
}

// If the reply to the last arrival is lost, and others have begun the next generation by the time
// that it is asked again, it is still answered about its own.
func TestAwait_LastReplyLost(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		first := await(t.Context(), w, p.Barrier(name, 2))
		q.On(world.BarrierEnterRun, 1, redistest.Silence)
		last := await(t.Context(), w, q.Barrier(name, 2))
		a := told(t, first, soon)
		next := await(t.Context(), w, p.Barrier(name, 2))
		agree(t, a, told(t, last, 5*time.Second))
		waits(t, next)
		agree(t, told(t, await(t.Context(), w, p.Barrier(name, 2)), soon), told(t, next, soon))
	})
}

// A party that left before its arrival reached Redis does not arrive later.
func TestAwait_LateArrival(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		p.On(world.BarrierEnterRun, 1, redistest.Delay(800*time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		late := await(ctx, w, p.Barrier(name, 2))
		told(t, late, time.Second, context.DeadlineExceeded, holdfast.ErrUnknown)
		first := await(t.Context(), w, q.Barrier(name, 2))
		w.At(3 * time.Second)
		waits(t, first)
		if s, err := q.Barrier(name, 2).State(t.Context()); err != nil || s.Arrived != 1 {
			t.Errorf("%+v, %v", s, err)
		}
		agree(t, told(t, await(t.Context(), w, q.Barrier(name, 2)), soon), told(t, first, soon))
	})
}

// If a party's ctx ends just as the last party comes, what it is told is what the others are told.
func TestAwait_CancelledAtEachMoment(t *testing.T) {
	tripped, broken := 0, 0
	for at := time.Duration(0); at < 60*time.Millisecond; at += 500 * time.Microsecond {
		play(t, func(t *testing.T, w *world.World) {
			p, q := w.FarAway(4*time.Millisecond), w.Process()
			ctx, cancel := context.WithTimeout(t.Context(), at)
			defer cancel()
			first := await(ctx, w, p.Barrier(name, 2))
			time.Sleep(50 * time.Millisecond)
			other, leave := context.WithTimeout(t.Context(), time.Second)
			defer leave()
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
		})
	}
	if tripped == 0 || broken == 0 {
		t.Errorf("%d tripped, %d broken: want both", tripped, broken)
	}
}

// The ctx ends after the last party has come, and before Await has heard of it: it returns nil.
func TestAwait_TrippedBeforeItsCtxEnded(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		p.Mute()
		defer p.Unmute()
		ctx, cancel := context.WithCancel(t.Context())
		first := await(ctx, w, p.Barrier(name, 2))
		last := told(t, await(t.Context(), w, q.Barrier(name, 2)), soon)
		waits(t, first)
		cancel()
		agree(t, last, told(t, first, soon))
	})
}

// If Redis does not answer a party whose ctx has ended, it says so after 3 s. The place goes in the
// background.
func TestAwait_CancelledWithoutAnswer(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		ctx, cancel := context.WithCancel(t.Context())
		first := await(ctx, w, p.Barrier(name, 3))
		second := await(t.Context(), w, q.Barrier(name, 3))
		w.At(time.Second)
		p.Unplug(true)
		cancel()
		a := told(t, first, 4*time.Second, context.Canceled, holdfast.ErrUnknown)
		world.Within(t, "it was told", a.at, 4*time.Second, 4*time.Second+soon)
		waits(t, second)
		p.Unplug(false)
		told(t, second, 2*time.Second, holdfast.ErrBroken)
	})
}

// No request reaches Redis for longer than a lease: the party arrives when one does.
func TestAwait_OutOfReach(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		p.Net.Refuse(true)
		first := await(t.Context(), w, p.Barrier(name, 1))
		w.At(2 * time.Minute)
		waits(t, first)
		p.Net.Refuse(false)
		agree(t, told(t, first, 5*time.Second))
	})
}

func TestReset_LostReplies(t *testing.T) {
	for _, script := range []string{world.BarrierStateRun, world.BarrierBreakRun} {
		for what, fault := range faults {
			t.Run(fmt.Sprint(script, "/", what), func(t *testing.T) {
				play(t, func(t *testing.T, w *world.World) {
					p, q := w.Process(), w.Process()
					first := await(t.Context(), w, p.Barrier(name, 2))
					q.On(script, 1, fault)
					if broke, err := q.Barrier(name, 2).Reset(t.Context()); !broke || err != nil {
						t.Errorf("%v, %v", broke, err)
					}
					told(t, first, soon, holdfast.ErrBroken)
				})
			})
		}
	}
}
