// These tests show what callers see, on virtual time.

package latch

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/test/enginetest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// pair is two processes at one Redis on virtual time: one behind a network, one near.
type pair struct {
	t         *testing.T
	ctx       context.Context
	mini      *redistest.MiniServer
	net       *redistest.FaultProxy
	e         *engine.Engine
	far, near *Latch
}

func play(t *testing.T, scene func(w *pair)) {
	redistest.Bubble(t, func(t *testing.T) {
		w := &pair{t: t, ctx: t.Context(), mini: redistest.Mini(t)}
		w.net = w.mini.Proxy()
		w.e = enginetest.New(t, w.net.Client(t))
		near := enginetest.New(t, w.mini.Client())
		w.far, w.near = New(w.e, "l", "l"), New(near, "l", "l")
		scene(w)
		w.net.Refuse(false)
		w.e.Close()
		near.Close()
		redistest.LeftBehind(t, w.mini.Client(), "holdfast_calls:{l}", "holdfast_latch:{l}")
	})
}

func (w *pair) set(n int64, options ...Option) {
	w.t.Helper()
	if set, err := w.near.TrySetCount(w.ctx, n, options...); !set || err != nil {
		w.t.Fatal(set, err)
	}
}

func (w *pair) countDown(l *Latch, want int64) {
	w.t.Helper()
	if left, err := l.CountDown(w.ctx); left != want || err != nil {
		w.t.Errorf("%d left, %v; want %d", left, err, want)
	}
}

// wait starts n waits on goroutines of their own, and returns when they park.
func (w *pair) wait(l *Latch, n int) <-chan error {
	done := make(chan error, n)
	for range n {
		go func() { done <- l.Wait(w.ctx) }()
	}
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	return done
}

// all fails the test unless n waits end now, each with that error.
func (w *pair) all(done <-chan error, n int, want error) {
	w.t.Helper()
	time.Sleep(10 * time.Millisecond)
	synctest.Wait()
	for range n {
		select {
		case err := <-done:
			if !errors.Is(err, want) {
				w.t.Errorf("waited: %v, want %v", err, want)
			}
		default:
			w.t.Fatal("still waiting")
		}
	}
}

// none fails the test if a wait has ended.
func (w *pair) none(done <-chan error) {
	w.t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		w.t.Errorf("it waits no more: %v", err)
	default:
	}
}

// A wait ends with its context, and with its Client. The errors say what ended.
func TestWhatEndsAWait(t *testing.T) {
	play(t, func(w *pair) {
		w.set(1)
		err := w.far.Wait(redistest.Within(w.t, 50*time.Millisecond))
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errs.Busy) {
			t.Error(err)
		}
		done := w.wait(w.far, 2)
		w.e.Close()
		w.all(done, 2, errs.Closed)
		if _, err := w.far.CountDown(w.ctx); !errors.Is(err, errs.Closed) || errors.Is(err, errs.Unknown) {
			t.Errorf("%v", err)
		}
		w.countDown(w.near, 0)
	})
}

func TestRunsOut(t *testing.T) {
	play(t, func(w *pair) {
		w.set(2, ExpiresIn(5*time.Second))
		done := w.wait(w.far, 10)
		time.Sleep(4900 * time.Millisecond)
		w.none(done)
		time.Sleep(100 * time.Millisecond)
		w.all(done, 10, errs.Deleted)

		w.set(1, ExpiresIn(5*time.Second)) // this one does not run out
		done = w.wait(w.far, 10)
		w.countDown(w.near, 0)
		w.all(done, 10, nil)
	})
}

// A waiter gets no message about the end of its generation, and other generations come and go. The
// waiter still learns how its generation ended.
func TestGenerationsAreToldApart(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(w *pair)
		want error
	}{
		"zero": {func(w *pair) { w.countDown(w.near, 0) }, nil},
		"deleted": {func(w *pair) {
			redistest.Check(w.t, redistest.Err(w.near.Delete(w.ctx)))
		}, errs.Deleted},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(w *pair) {
				w.set(1)
				first := w.wait(w.far, 3)
				w.net.Refuse(true)
				w.net.Cut()
				tc.end(w)
				w.set(1)
				w.countDown(w.near, 0)
				w.set(2)
				second := w.wait(w.near, 3)
				w.net.Refuse(false)
				time.Sleep(3 * time.Second)
				w.all(first, 3, tc.want)
				w.none(second)
				third := w.wait(w.far, 3) // of the first's Client, and not confused by it
				w.none(third)
				w.countDown(w.near, 1)
				w.countDown(w.far, 0)
				w.all(second, 3, nil)
				w.all(third, 3, nil)
			})
		})
	}
}

// A waiter in the same process waits for the new generation. The end of the old generation does not
// let this waiter go.
func TestANewWaiterIsNotSharedTheOldEnd(t *testing.T) {
	play(t, func(w *pair) {
		w.set(1)
		first := w.wait(w.far, 3)
		disarm := w.mini.FailCommand("PUBLISH", 1) // no waiter gets a message
		w.countDown(w.near, 0)
		disarm()
		disarm = w.mini.FailCommand("PUBLISH", 1) // no waiter gets a message
		w.set(1)
		disarm()
		second := w.wait(w.far, 3)
		time.Sleep(2 * time.Second)
		w.all(first, 3, nil)
		w.none(second)
		w.countDown(w.near, 0)
		w.all(second, 3, nil)
	})
}

// A count-down goes on when its context is cancelled, and counts once when its reply is lost. It
// goes on in the background when Redis cannot be reached.
func TestCountDownCountsOnce(t *testing.T) {
	play(t, func(w *pair) {
		w.set(4)
		cancelled, cancel := context.WithCancel(w.ctx)
		cancel()
		if left, err := w.far.CountDown(cancelled); left != 3 || err != nil {
			t.Errorf("%d, %v", left, err)
		}
		w.net.OnCommand(redistest.Nth("EVALSHA", int64(w.net.Count("EVALSHA"))+1, redistest.CloseAfterExec))
		w.countDown(w.far, 2)

		w.net.Refuse(true)
		w.net.Cut()
		began := time.Now()
		redistest.Is(t, "CountDown", redistest.Err(w.far.CountDown(w.ctx)), errs.Unknown)
		redistest.Equal(t, time.Since(began), 5*time.Second, "it had its caller wait for %v")
		w.net.Refuse(false)
		time.Sleep(2 * time.Second) // longer than a server that was out of reach is left alone
		if n, err := w.near.Count(w.ctx); n != 1 || err != nil {
			t.Errorf("count %d, %v", n, err)
		}
		w.countDown(w.near, 0)
	})
}

func TestArguments(t *testing.T) {
	play(t, func(w *pair) {
		_, zero := w.near.TrySetCount(w.ctx, 0)
		_, never := w.near.TrySetCount(w.ctx, 1, ExpiresIn(0))
		_, name := New(w.e, "", "").Count(w.ctx)
		for i, err := range []error{zero, never, name, New(engine.Broken(errs.BadArgument), "x", "x").Wait(w.ctx)} {
			if !errors.Is(err, errs.BadArgument) {
				t.Errorf("%d: %v", i, err)
			}
		}
		if keys := w.mini.Keys(); len(keys) > 0 {
			t.Errorf("left behind: %q", keys)
		}
	})
}

// When Redis loses its data, no waiter is told that the count came to zero.
func TestLostDataOpensNothing(t *testing.T) {
	play(t, func(w *pair) {
		w.set(3)
		done := w.wait(w.far, 50)
		w.mini.FlushAll()
		time.Sleep(line.PollBound)
		w.all(done, 50, errs.Unknown)
		w.all(w.wait(w.far, 1), 1, nil) // a new waiter finds no latch
	})
}
