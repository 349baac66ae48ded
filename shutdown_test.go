// This file is about Shutdown: what it refuses, what it waits for, and what it leaves.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// shutDown begins a Shutdown, and returns a channel that carries what it returns.
func shutDown(ctx context.Context, p *world.Process) <-chan error {
	done := make(chan error, 1)
	go func() { done <- p.Shutdown(ctx) }()
	synctest.Wait()
	return done
}

func TestShutdown_NothingIsHeld(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		w.Release(w.Lock(t.Context(), p.MyLock))
		for range 2 {
			if err := p.Shutdown(t.Context()); err != nil || w.Now() != 0 {
				t.Errorf("%v, after %v", err, w.Now())
			}
		}
		_, err := p.MyLock.Lock(t.Context())
		world.WantErr(t, err, holdfast.ErrClosed)
		if err := holdfast.New(nil).Shutdown(t.Context()); err != nil {
			t.Errorf("of a Client that cannot be used: %v", err)
		}
	})
}

// What is held goes on, renewed, until it is released. What is new is refused, and waits end.
func TestShutdown_WaitsForWhatIsHeld(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		theirs := w.Lock(t.Context(), q.Mutex("theirs"))
		var waits []*world.Attempt
		for range 3 {
			waits = append(waits, w.GoLock(t.Context(), p.MyLock), w.GoLock(t.Context(), p.Mutex("theirs")),
				w.GoLock(t.Context(), p.FairMutex("theirs")), w.GoLock(t.Context(), p.RWMutex("theirs").RLocker()))
		}
		done := shutDown(t.Context(), p)
		for i, wait := range waits {
			if _, err := wait.Result(); !errors.Is(err, holdfast.ErrClosed) || w.Now() != 0 {
				t.Errorf("wait %d: %v, after %v", i, err, w.Now())
			}
		}
		for what, f := range map[string]func(context.Context) (*holdfast.Lease, error){
			"Lock": p.Mutex("new").Lock, "TryLock": p.Mutex("new").TryLock, "RLock": p.RWMutex("new").RLock,
			"Attach": func(ctx context.Context) (*holdfast.Lease, error) {
				return p.Mutex("theirs").Attach(ctx, theirs.Owner())
			},
		} {
			_, err := f(t.Context())
			if !errors.Is(err, holdfast.ErrClosed) {
				t.Errorf("%s: %v", what, err)
			}
		}
		w.At(5 * time.Minute)
		world.WantEnd(t, l.Context(t.Context()), nil)
		if err := l.Extend(t.Context(), time.Minute); err != nil {
			t.Errorf("Extend: %v", err)
		}
		// Work goes on: it re-enters, and locks more.
		inner := w.Lock(l.Context(t.Context()), p.MyLock)
		more := w.Lock(inner.Context(t.Context()), p.Mutex("more"))
		w.Release(l, inner)
		w.WantFree()
		w.At(10 * time.Minute)
		select {
		case err := <-done:
			t.Errorf("returned %v before the last release", err)
		default:
		}
		w.Release(more)
		if err := <-done; err != nil || w.Now() != 10*time.Minute {
			t.Errorf("%v, after %v", err, w.Now())
		}
		if w.Mini.Exists("more") || w.Mini.Exists("new") {
			t.Error("something is left")
		}
		world.WantEnd(t, theirs.Context(t.Context()), nil)
		w.Release(theirs)
	})
}

// If ctx ends first, the Client closes all the same, and the lock stays for its lease.
func TestShutdown_ContextEnds(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		world.WantErr(t, p.Shutdown(ctx), context.DeadlineExceeded)
		if w.Now() != 5*time.Second {
			t.Errorf("after %v", w.Now())
		}
		world.WantErr(t, l.Err(), holdfast.ErrClosed)
		w.WantHolder(l.Owner(), 1)
		next := w.Lock(t.Context(), q.MyLock)
		world.Within(t, "the next grant", w.Now(), 29*time.Second, 30*time.Second+soon)
		w.Release(next)
	})
}

// A release that is under way is waited for, for longer than Close would.
func TestShutdown_WaitsForReleases(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		done := shutDown(t.Context(), p)
		p.Unplug(true)
		released := make(chan error, 1)
		go func() { released <- l.Release(t.Context()) }()
		w.At(3 * time.Second)
		select {
		case err := <-done:
			t.Errorf("returned %v before the release was answered", err)
		default:
		}
		p.Unplug(false)
		if err := errors.Join(<-released, <-done); err != nil {
			t.Error(err)
		}
		w.WantFree()
	})
}

// A grant whose answer comes after the beginning of Shutdown is given back.
func TestShutdown_AGrantOnItsWay(t *testing.T) {
	for _, run := range []string{world.LockRun, world.EnterRun} {
		world.Play(t, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			other := w.Lock(t.Context(), p.Mutex("other"))
			answer := make(chan struct{})
			p.On(run, 1, redistest.HoldReply(answer))
			if run == world.EnterRun {
				theirs := w.Lock(t.Context(), q.MyLock)
				time.AfterFunc(time.Second/2, func() { w.Release(theirs) })
			}
			a := w.GoLock(t.Context(), p.MyLock)
			w.At(time.Second)
			done := shutDown(t.Context(), p)
			close(answer)
			if _, err := a.Result(); !errors.Is(err, holdfast.ErrClosed) {
				t.Errorf("%s: %v", run, err)
			}
			w.Release(other)
			if err := <-done; err != nil {
				t.Errorf("%s: %v", run, err)
			}
			w.WantFree()
		})
	}
}

// A Close at the same time ends a Shutdown.
func TestShutdown_Close(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		done := shutDown(t.Context(), p)
		p.Close()
		if err := <-done; err != nil || w.Now() != 0 {
			t.Errorf("%v, after %v", err, w.Now())
		}
		world.WantErr(t, l.Err(), holdfast.ErrClosed)
		w.At(31 * time.Second)
	})
}

// Whatever goes on as Shutdown begins, no work is cut off, and nothing of the process is left.
func TestShutdown_InTheMiddle(t *testing.T) {
	for round := range 20 {
		world.Play(t, func(t *testing.T, w *world.World) {
			p, q := w.FarAway(time.Millisecond), w.FarAway(time.Millisecond)
			ctx, cancel := context.WithCancel(t.Context())
			var workers sync.WaitGroup
			for i := range 24 {
				of := []*world.Process{p, q}[i%2]
				name := fmt.Sprint("n", i%3)
				workers.Go(func() {
					for ctx.Err() == nil {
						err := holdfast.Do(ctx, of.Mutex(name), func(ctx context.Context) error {
							time.Sleep(time.Duration(i) * 100 * time.Microsecond)
							return context.Cause(ctx)
						})
						if errors.Is(err, holdfast.ErrClosed) && of == p {
							return
						}
						if err != nil && !errors.Is(err, context.Canceled) {
							t.Errorf("%d: %v", i, err)
						}
					}
				})
			}
			time.Sleep(50*time.Millisecond + time.Duration(round)*173*time.Microsecond)
			if err := p.Shutdown(t.Context()); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			w.At(w.Now() + time.Second)
			cancel()
			workers.Wait()
			q.Close()
			time.Sleep(time.Second) // a dial may be under way
			for i := range 3 {
				if name := fmt.Sprint("n", i); w.Mini.Exists(name) {
					t.Errorf("round %d: %s is held by %v", round, name, w.Holders(name))
				}
			}
		})
	}
}
