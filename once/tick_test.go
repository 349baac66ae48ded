// These tests show that each tick has one winner, whatever the clocks say and whatever is lost.

package once_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// Three replicas keep one schedule by clocks that differ by an hour each way. Each tick runs once.
func TestTick_ClocksThatDiffer(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		const every, keep = 10 * time.Minute, 2*time.Hour + time.Minute
		first := w.Start.Add(2 * time.Hour).Truncate(every)
		var mu sync.Mutex
		wins := make(map[time.Time]int)
		won := make(map[int]int)
		var replicas sync.WaitGroup
		for i, ahead := range []time.Duration{-time.Hour, 0, time.Hour} {
			p := w.Process()
			zone := time.FixedZone("", i*3600) // and by their time zones
			replicas.Go(func() {
				for n := range 40 {
					at := first.Add(time.Duration(n) * every)
					time.Sleep(time.Until(at.Add(-ahead)))
					ok, err := p.Tick(t.Context(), "report", at.In(zone), keep)
					if err != nil {
						t.Error(err)
					}
					if ok {
						mu.Lock()
						wins[at]++
						won[i]++
						mu.Unlock()
					}
				}
			})
		}
		replicas.Wait()
		for n := range 40 {
			if at := first.Add(time.Duration(n) * every); wins[at] != 1 {
				t.Errorf("the tick of %v was won %d times", at, wins[at])
			}
		}
		if len(won) != 1 || won[2] != 40 {
			t.Errorf("won by %v, want all by the replica that is ahead", won)
		}
	})
}

// Replicas that come at once: one wins each tick, and ticks of other names and times are others.
func TestTick_Together(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		at := w.Start
		var mu sync.Mutex
		wins := make(map[string]int)
		var all sync.WaitGroup
		for range 3 {
			p := w.Process()
			for range 20 {
				for _, name := range []string{"a", "b", "a:b"} {
					for _, time := range []time.Time{at, at.Add(1), at.Add(time.Second)} {
						all.Go(func() {
							ok, err := p.Tick(t.Context(), name, time, 5*60*1e9)
							if err != nil {
								t.Error(err)
							}
							mu.Lock()
							defer mu.Unlock()
							if ok {
								wins[fmt.Sprint(name, time.UnixNano())]++
							}
						})
					}
				}
			}
		}
		all.Wait()
		if len(wins) != 9 {
			t.Errorf("%d ticks were won, want 9", len(wins))
		}
		for tick, n := range wins {
			if n != 1 {
				t.Errorf("%s was won %d times", tick, n)
			}
		}
	})
}

func TestTick_LostReplies(t *testing.T) {
	for what, fault := range map[string]redistest.Fault{
		"reply lost": redistest.CloseAfterExec, "request lost": redistest.DropBefore, "half a reply": redistest.HalfReply,
		"sent twice": redistest.Duplicate, "silence": redistest.Silence, "late": redistest.Delay(900 * time.Millisecond),
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				p.On(world.TickRun, 1, fault)
				if ok, err := p.Tick(t.Context(), "report", w.Start, time.Hour); !ok || err != nil {
					t.Errorf("%v, %v", ok, err)
				}
				for _, process := range []*world.Process{p, q} {
					if ok, err := process.Tick(t.Context(), "report", w.Start, time.Hour); ok || err != nil {
						t.Errorf("once more: %v, %v", ok, err)
					}
				}
			})
		})
	}
}

// A tick whose caller was told of an error is given back.
func TestTick_GivenBack(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		p.Each(func(s world.Sending) redistest.Fault {
			if s.Script == world.TickRun {
				return redistest.Silence
			}
			return redistest.Pass
		})
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		ok, err := p.Tick(ctx, "report", w.Start, time.Hour)
		if ok {
			t.Error("won")
		}
		world.WantErr(t, err, context.DeadlineExceeded, holdfast.ErrUnavailable)
		if err == nil || !strings.HasPrefix(err.Error(), `holdfast: take tick "report": `) {
			t.Error(err)
		}
		w.At(4 * time.Second)
		if ok, err := q.Tick(t.Context(), "report", w.Start, time.Hour); !ok || err != nil {
			t.Errorf("another: %v, %v", ok, err)
		}
	})
}

func TestTick_IsKept(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		for i, step := range []struct {
			at  time.Duration
			won bool
		}{{0, true}, {time.Minute - time.Millisecond, false}, {time.Minute + time.Millisecond, true}} {
			w.At(step.at)
			if ok, err := p.Tick(t.Context(), "report", w.Start, time.Minute); ok != step.won || err != nil {
				t.Errorf("%d: %v, %v", i, ok, err)
			}
		}
	})
}

func TestTick_Refused(t *testing.T) {
	play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		for what, f := range map[string]func() (bool, error){
			"no name":         func() (bool, error) { return p.Tick(t.Context(), "", w.Start, time.Hour) },
			"a reserved name": func() (bool, error) { return p.Tick(t.Context(), "holdfast_x", w.Start, time.Hour) },
			"no time":         func() (bool, error) { return p.Tick(t.Context(), "n", w.Start, 0) },
			"no client":       func() (bool, error) { return holdfast.New(nil).Tick(t.Context(), "n", w.Start, time.Hour) },
		} {
			ok, err := f()
			if ok {
				t.Error(what)
			}
			world.WantErr(t, err, holdfast.ErrBadArgument)
		}
		w.RDB.SAdd(t.Context(), "holdfast_tick:{n}:2000-01-01T00:00:00Z", "x")
		_, err := p.Tick(t.Context(), "n", w.Start, time.Hour)
		world.WantErr(t, err, holdfast.ErrWrongType)
		w.RDB.FlushAll(t.Context())
		p.Close()
		_, err = p.Tick(t.Context(), "n", w.Start, time.Hour)
		world.WantErr(t, err, holdfast.ErrClosed)
	})
}
