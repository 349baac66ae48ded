// Those that wait come in turn, at their time, whatever becomes of the others.

package limiter_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/limiter"
)

const tenth = 100 * time.Millisecond

func TestWait_InTurnAcrossProcesses(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		limits := []*limiter.Limiter{ten(p), ten(q)}
		drained(t, limits[0])
		begin := w.Now()
		var all []*waiting
		for i := range 60 {
			all = append(all, wait(t.Context(), w, limits[i%2], 1))
		}
		d := allow(t, limits[0], 1, false, 0)
		world.Within(t, "retry after", d.RetryAfter, 5900*time.Millisecond, 6100*time.Millisecond)
		for i, a := range all {
			a.wantAt(t, begin+time.Duration(i+1)*tenth)
		}
		if n := p.Runs(world.LimitTakeRun) + q.Runs(world.LimitTakeRun); n > 62+2*8 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestWait_ShortOnesAskOnce(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		l := ten(p)
		drained(t, l)
		begin := w.Now()
		p.Forget()
		for i := range 5 {
			redistest.Check(t, l.Wait(t.Context(), 1))
			world.Within(t, "waited", w.Now()-begin, time.Duration(i+1)*tenth, time.Duration(i+1)*tenth+2*time.Millisecond)
		}
		world.Equal(t, p.Runs(""), 5, "%d requests, want 5")
	})
}

func TestWait_DeadlineBeforeTheTurn(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		l := ten(p)
		drained(t, l)
		begin := w.Now()
		ctx := redistest.Within(t, 250*time.Millisecond)
		err := l.Wait(ctx, 3)
		world.WantErr(t, err, holdfast.ErrBusy)
		busy := (*holdfast.BusyError)(nil)
		if !errors.As(err, &busy) || busy.Left < 299*time.Millisecond || busy.Left > 300*time.Millisecond {
			t.Errorf("%v, of which %+v is known", err, busy)
		}
		if errors.Is(err, context.DeadlineExceeded) || w.Now() > begin+5*time.Millisecond {
			t.Errorf("after %v: %v", w.Now()-begin, err)
		}
		wait(ctx, w, l, 2).wantAt(t, begin+2*tenth)
		wait(t.Context(), w, ten(q), 1).wantAt(t, begin+3*tenth)
	})
}

// Who leaves the end of the line gives its units back; who leaves the middle leaves the others their times.
func TestWait_CancelledWhileItSleeps(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		l := ten(p)
		drained(t, l)
		begin := w.Now()
		ctx, cancel := context.WithCancel(t.Context())
		a := wait(t.Context(), w, l, 1)
		b := wait(ctx, w, l, 1)
		c := wait(t.Context(), w, ten(q), 1)
		ctx2, cancel2 := context.WithCancel(t.Context())
		d := wait(ctx2, w, l, 2)
		cancel()
		cancel2()
		b.wantAt(t, w.Now(), holdfast.ErrBusy, context.Canceled)
		d.wantAt(t, w.Now(), holdfast.ErrBusy, context.Canceled)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		e := wait(t.Context(), w, l, 1)
		a.wantAt(t, begin+1*tenth)
		c.wantAt(t, begin+3*tenth)
		e.wantAt(t, begin+4*tenth)
	})
}

func TestWait_TheClientCloses(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		for _, n := range []int{1, 5} { // a short wait and, behind it, a long one
			drained(t, ten(q))
			for range 4 * (n - 1) {
				wait(t.Context(), w, ten(q), 1)
			}
			a := wait(t.Context(), w, ten(p), 1)
			p.Close()
			a.wantAt(t, w.Now(), holdfast.ErrClosed)
			turn := time.Duration(4*n-3) * tenth // of the next, if nothing is left of a
			world.Within(t, "the turn of the next", allow(t, ten(q), 1, false, 0).RetryAfter, turn-50*time.Millisecond, turn)
			p = w.Process()
			time.Sleep(time.Minute)
		}
	})
}

// Shutdown ends those that wait, except in work that it waits for, and does not wait for their turns.
func TestWait_Shutdown(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		drained(t, ten(q))
		begin := w.Now()
		for range 5 {
			wait(t.Context(), w, ten(q), 1)
		}
		held, err := p.Mutex("m").Lock(t.Context())
		redistest.Must(t, err)
		work := wait(held.Context(t.Context()), w, ten(p), 1)
		short, long := wait(t.Context(), w, ten(p), 4), wait(t.Context(), w, ten(p), 5) // a nap, and a wait in line
		shut := make(chan error, 1)
		go func() { shut <- p.Shutdown(t.Context()) }()
		now := w.Now()
		short.wantAt(t, now, holdfast.ErrClosed)
		long.wantAt(t, now, holdfast.ErrClosed)
		work.wantAt(t, begin+6*tenth)
		redistest.Check(t, held.Release(t.Context()))
		redistest.Check(t, <-shut)
	})
}

func TestWait_EachCallCountsOnce(t *testing.T) {
	for what, fault := range faults {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
				slow := func(p *world.Process) *limiter.Limiter {
					return p.Limiter("api", limiter.Rate(10, 100*time.Second), limiter.Burst(1))
				}
				a, b := slow(p), slow(q)
				allow(t, a, 1, true, 0)
				begin := w.Now()
				p.On(world.LimitTakeRun, 1, fault)
				first := wait(t.Context(), w, a, 1)
				time.Sleep(5 * time.Second)
				second := wait(t.Context(), w, b, 1)
				first.wantAt(t, begin+10*time.Second)
				second.wantAt(t, begin+20*time.Second)
			})
		})
	}
}

func TestReserve(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		l := ten(p)
		reserve := func(n int) *limiter.Reservation {
			t.Helper()
			r, err := l.Reserve(t.Context(), n)
			redistest.Must(t, err)
			return r
		}
		cancel := func(r *limiter.Reservation) {
			t.Helper()
			redistest.Check(t, r.Cancel(t.Context()))
		}
		a, b := reserve(5), reserve(2)
		world.Within(t, "the delay", a.Delay(), 0, 0)
		world.Within(t, "the delay", b.Delay(), 199*time.Millisecond, 200*time.Millisecond)
		cancel(a) // b keeps its time
		c := reserve(1)
		world.Within(t, "behind another", c.Delay(), 299*time.Millisecond, 300*time.Millisecond)
		p.On(world.LimitGiveBackRun, 1, faults["reply lost"])
		cancel(c)
		cancel(c)
		d := reserve(1)
		cancel(c) // a second time gives nothing back
		world.Within(t, "where another was", d.Delay(), 290*time.Millisecond, 300*time.Millisecond)
		world.Within(t, "behind it", reserve(1).Delay(), 390*time.Millisecond, 400*time.Millisecond)
	})
}
