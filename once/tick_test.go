// These tests show for how long a tick has its winner, and when nobody wins it.

package once_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// tick fails the test unless the tick of the world's beginning is won, or not.
func tick(t *testing.T, w *world.World, p *world.Process, keep time.Duration, want bool) {
	t.Helper()
	if won, err := p.Tick(t.Context(), "report", w.Start, keep); won != want || err != nil {
		t.Errorf("at %v: %v, %v, want %v", w.Now(), won, err, want)
	}
}

// A tick whose caller was told of an error is given back.
func TestTick_GivenBack(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		p.Always(world.TickRun, redistest.Silence)
		ctx := redistest.Within(t, 500*time.Millisecond)
		ok, err := p.Tick(ctx, "report", w.Start, time.Hour)
		world.WantErr(t, err, context.DeadlineExceeded, holdfast.ErrUnavailable)
		if ok || err == nil || !strings.HasPrefix(err.Error(), `holdfast: take tick "report": `) {
			t.Error(ok, err)
		}
		w.At(4 * time.Second)
		tick(t, w, q, time.Hour, true)
	})
}

// A tick has one winner for as long as it is kept, whatever time zone its callers are in.
func TestTick_IsKept(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		tick(t, w, p, time.Minute, true)
		w.At(time.Minute - time.Millisecond)
		tick(t, w, p, time.Minute, false)
		won, err := q.Tick(t.Context(), "report", w.Start.In(time.FixedZone("", 3600)), time.Minute)
		if won || err != nil {
			t.Errorf("in another time zone: %v, %v", won, err)
		}
		w.At(time.Minute + time.Millisecond)
		tick(t, w, p, time.Minute, true)
	})
}

func TestTick_Refused(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		refused := func(c *holdfast.Client, name string, keep time.Duration, want error) {
			t.Helper()
			if ok, err := c.Tick(t.Context(), name, w.Start, keep); ok {
				t.Errorf("%q is won", name)
			} else {
				world.WantErr(t, err, want)
			}
		}
		refused(p.Client, "", time.Hour, holdfast.ErrBadArgument)
		refused(p.Client, "holdfast_x", time.Hour, holdfast.ErrBadArgument)
		refused(p.Client, "no time", 0, holdfast.ErrBadArgument)
		refused(holdfast.New(nil), "n", time.Hour, holdfast.ErrBadArgument)
		w.RDB.SAdd(t.Context(), "holdfast_tick:{n}:2000-01-01T00:00:00Z", "x")
		refused(p.Client, "n", time.Hour, holdfast.ErrWrongType)
		w.RDB.FlushAll(t.Context())
		p.Close()
		refused(p.Client, "n", time.Hour, holdfast.ErrClosed)
	})
}

// A process that shuts down wins no tick, so that another wins it: whoever won there would begin a job in a process
// that ends. Work under a lease is waited for, and may take ticks.
func TestTick_DuringShutdown(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		l := w.Lock(t.Context(), p.Mutex("m"))
		done := make(chan error, 1)
		go func() { done <- p.Shutdown(t.Context()) }()
		synctest.Wait()
		won, err := p.Tick(t.Context(), "report", w.Start, time.Hour)
		if world.WantErr(t, err, holdfast.ErrClosed); won {
			t.Error("won in a process that shuts down")
		}
		tick(t, w, q, time.Hour, true)
		if won, err := p.Tick(l.Context(t.Context()), "under a lease", w.Start, time.Hour); !won || err != nil {
			t.Errorf("under a lease: %v, %v", won, err)
		}
		ctx := l.Context(context.Background())
		w.Release(l)
		redistest.Check(t, <-done)
		world.WantErr(t, redistest.Err(p.Tick(ctx, "after it", w.Start, time.Hour)), holdfast.ErrClosed)
	})
}
