// This file is about Do, and about a Locker that is used as a sync.Locker.

package holdfast_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

func TestDo(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		ran := false
		err := holdfast.Do(t.Context(), p.MyLock, func(ctx context.Context) error {
			ran = true
			if got := w.Holders(world.Name); len(got) != 1 {
				t.Errorf("held by %q", got)
			}
			w.Release(w.Lock(ctx, p.MyLock)) // a lock with ctx is nested
			world.WantEnd(t, ctx, nil)
			return nil
		})
		if err != nil || !ran {
			t.Errorf("%v, ran %v", err, ran)
		}
		w.WantFree()
	})
}

func TestDo_Errors(t *testing.T) {
	work := errors.New("work failed")
	for _, tc := range []struct {
		what    string
		during  func(w *world.World, ctx context.Context) error
		matches []error
		not     []error
	}{
		{"work fails", func(*world.World, context.Context) error { return work },
			[]error{work}, []error{holdfast.ErrLost}},
		{"lost, work does not notice", func(w *world.World, ctx context.Context) error { w.Mini.Del(world.Name); <-ctx.Done(); return nil },
			[]error{holdfast.ErrLost}, []error{work}},
		{"lost, work fails", func(w *world.World, ctx context.Context) error { w.Mini.Del(world.Name); <-ctx.Done(); return work },
			[]error{holdfast.ErrLost, work}, nil},
		{"lost, work returns the cause", func(w *world.World, ctx context.Context) error {
			w.Mini.Del(world.Name)
			<-ctx.Done()
			return context.Cause(ctx)
		}, []error{holdfast.ErrLost}, nil},
		{"lost unnoticed, found at the release", func(w *world.World, _ context.Context) error { w.Mini.Del(world.Name); return nil },
			[]error{holdfast.ErrLost}, nil},
	} {
		t.Run(tc.what, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p := w.Process()
				err := holdfast.Do(t.Context(), p.MyLock, func(ctx context.Context) error { return tc.during(w, ctx) })
				world.WantErr(t, err, tc.matches...)
				for _, target := range tc.not {
					if errors.Is(err, target) {
						t.Errorf("%v matches %v", err, target)
					}
				}
				w.WantFree()
			})
		})
	}
}

func TestDo_ReleaseFails(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		work := errors.New("work failed")
		err := holdfast.Do(t.Context(), p.MyLock, func(context.Context) error {
			p.Unplug(true)
			return work
		})
		world.WantErr(t, err, work, context.DeadlineExceeded)
		w.At(31 * time.Second)
	})
}

func TestDo_NotAcquired(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := holdfast.Do(ctx, q.MyLock, func(context.Context) error {
			t.Error("work has run")
			return nil
		}, holdfast.OnAcquire(func(context.Context, holdfast.Handle) { t.Error("the hook of the grant has run") }),
			holdfast.OnExit(func(context.Context, holdfast.Handle, error) { t.Error("the hook of the exit has run") }))
		world.WantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
		w.Release(l)
	})
}

func TestDo_Panic(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		var seen []string
		func() {
			defer func() {
				if r := recover(); r != "work panics" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = holdfast.Do(t.Context(), p.MyLock, func(context.Context) error { panic("work panics") },
				holdfast.OnAcquire(func(context.Context, holdfast.Handle) { seen = append(seen, "acquired") }),
				holdfast.OnExit(func(context.Context, holdfast.Handle, error) { seen = append(seen, "exit") }))
		}()
		w.WantFree()
		if !slices.Equal(seen, []string{"acquired", "exit"}) {
			t.Errorf("hooks %q", seen)
		}
	})
}

// When the caller's context ends while the work runs, the lock is released.
func TestDo_Cancelled(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		ctx, cancel := context.WithCancel(t.Context())
		err := holdfast.Do(ctx, p.MyLock, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		world.WantErr(t, err, context.Canceled)
		w.WantFree()
	})
}

func TestSyncLocker(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		shared := []sync.Locker{holdfast.SyncLocker(t.Context(), p.MyLock), holdfast.SyncLocker(t.Context(), q.MyLock)}
		inside := 0
		var workers sync.WaitGroup
		for i := range 20 {
			workers.Go(func() {
				locker := shared[i%2]
				locker.Lock()
				defer locker.Unlock()
				if inside++; inside != 1 {
					t.Errorf("%d inside", inside)
				}
				time.Sleep(time.Millisecond)
				inside--
			})
		}
		workers.Wait()
		w.WantFree()
	})
}

func TestSyncLocker_Panics(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		panics := func(what string, want error, f func()) {
			t.Helper()
			defer func() {
				t.Helper()
				r := recover()
				err, _ := r.(error)
				if r == nil || want != nil && !errors.Is(err, want) {
					t.Errorf("%s: recovered %v, want %v", what, r, want)
				}
			}()
			f()
		}
		locker := holdfast.SyncLocker(t.Context(), p.MyLock)
		panics("Unlock of what is not locked", nil, locker.Unlock)
		locker.Lock()
		if got := w.Holders(world.Name); len(got) != 1 {
			t.Errorf("held by %q", got)
		}
		locker.Unlock()
		panics("Unlock, again", nil, locker.Unlock)

		locker.Lock()
		w.Mini.Del(world.Name)
		other := w.Lock(t.Context(), q.MyLock)
		panics("Unlock of what was lost", holdfast.ErrLost, locker.Unlock)
		w.WantHolder(other.Owner(), 1)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		panics("Lock in vain", holdfast.ErrBusy, holdfast.SyncLocker(ctx, p.MyLock).Lock)
		w.Release(other)
		panics("Lock with a bad argument", holdfast.ErrBadArgument, holdfast.SyncLocker(t.Context(), p.Mutex("")).Lock)
	})
}

func TestSyncLocker_Cond(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		cond := sync.NewCond(holdfast.SyncLocker(t.Context(), p.MyLock))
		ready, seen := false, make(chan struct{})
		go func() {
			cond.L.Lock()
			for !ready {
				cond.Wait()
			}
			cond.L.Unlock()
			close(seen)
		}()
		w.At(time.Second)
		cond.L.Lock()
		ready = true
		cond.L.Unlock()
		cond.Broadcast()
		<-seen
		w.WantFree()
	})
}

// Goroutines that share a sync.Locker exclude each other. This is so even if its context carries a
// lease on the lock: then all of them wait for that lease to end.
func TestASyncLockerDoesNotReenter(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		s := holdfast.SyncLocker(l.Context(t.Context()), p.MyLock)
		in, out := 0, make(chan any, 2)
		for range 2 {
			go func() {
				defer func() { out <- recover() }()
				s.Lock()
				in++
			}()
		}
		w.At(time.Second)
		if in > 0 {
			t.Errorf("%d are in beside the holder", in)
		}
		w.Release(l) // this ends the context of the sync.Locker
		for range 2 {
			if err, ok := (<-out).(error); !ok || !errors.Is(err, context.Canceled) {
				t.Errorf("Lock panicked with %v", err)
			}
		}
	})
}

// An option that is nil is no option.
func TestANilDoOption(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		done := false
		err := holdfast.Do(t.Context(), w.Process().MyLock, func(context.Context) error {
			done = true
			return nil
		}, nil, holdfast.OnExit(nil), holdfast.OnAcquire(nil))
		if err != nil || !done {
			t.Errorf("done %v, %v", done, err)
		}
	})
}

// Each error matches the one sentinel that fits it, and no other sentinel.
func TestErrorsMatchOneFact(t *testing.T) {
	sentinels := []error{
		holdfast.ErrBusy, holdfast.ErrLost, holdfast.ErrReleased, holdfast.ErrMaxHold, holdfast.ErrClosed,
		holdfast.ErrWrongType, holdfast.ErrOutOfMemory, holdfast.ErrDenied, holdfast.ErrBadArgument,
	}
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		only := func(what string, err, want error) {
			t.Helper()
			for _, s := range sentinels {
				if errors.Is(err, s) != (s == want) {
					t.Errorf("%s: %v: matches %v is %v", what, err, s, errors.Is(err, s))
				}
			}
			if err.Error() == want.Error() {
				t.Errorf("%s: %q says neither what nor where", what, err)
			}
		}
		l := w.Lock(t.Context(), p.MyLock)
		_, err := q.MyLock.TryLock(t.Context())
		only("busy", err, holdfast.ErrBusy)
		_, err = q.Mutex(world.Name, holdfast.Fixed(0)).TryLock(t.Context())
		only("bad lease", err, holdfast.ErrBadArgument)
		_, err = q.MyLock.Attach(t.Context(), lease.Owner(hold.NewOwner("6e0e2d3c-0000-4000-8000-000000000000", 1)))
		only("attach", err, holdfast.ErrLost)
		inner := w.Lock(l.Context(t.Context()), p.MyLock)
		_, err = l.Detach(t.Context())
		only("detach under an inner lease", err, holdfast.ErrBadArgument)
		w.Release(inner)
		w.Release(l)
		only("second release", l.Release(t.Context()), holdfast.ErrReleased)
		only("ended", l.Err(), holdfast.ErrReleased)
		short := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.MaxHold(time.Second)))
		<-short.Done()
		only("held too long", short.Release(t.Context()), holdfast.ErrMaxHold)
		w.Mini.FlushAll()
		lost := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Fixed(time.Second)))
		<-lost.Done()
		only("run out", lost.Err(), holdfast.ErrLost)
		w.RDB.Set(t.Context(), "text", 1, time.Second)
		_, err = p.Mutex("text").TryLock(t.Context())
		only("wrong type", err, holdfast.ErrWrongType)
		p.Close()
		_, err = p.MyLock.Lock(t.Context())
		only("closed", err, holdfast.ErrClosed)
	})
}

// The wait has its own end, and work goes on for as long as it likes.
func TestWaitAtMost(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		never := func(context.Context) error { t.Error("work has run"); return nil }
		started := w.Now()
		err := holdfast.Do(t.Context(), q.MyLock, never, holdfast.WaitAtMost(3*time.Second))
		world.WantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
		if waited := w.Now() - started; waited != 3*time.Second {
			t.Errorf("waited %v", waited)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		started = w.Now()
		err = holdfast.Do(short, q.MyLock, never, holdfast.WaitAtMost(time.Hour))
		world.WantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
		if waited := w.Now() - started; waited != time.Second {
			t.Errorf("waited %v under a context that ends after 1s", waited)
		}
		time.AfterFunc(time.Second, func() { w.Release(l) })
		value, err := holdfast.DoValue(t.Context(), q.MyLock, func(ctx context.Context) (int, error) {
			if _, bounded := ctx.Deadline(); bounded {
				t.Error("the work has the deadline of the wait")
			}
			time.Sleep(time.Minute)
			return 42, ctx.Err()
		}, holdfast.WaitAtMost(3*time.Second))
		if value != 42 || err != nil {
			t.Errorf("%d, %v", value, err)
		}
		w.WantFree()
	})
}

func TestWaitAtMost_Once(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		never := func(context.Context) error { t.Error("work has run"); return nil }
		started, asked := w.Now(), q.Runs(world.LockRun)
		err := holdfast.Do(t.Context(), q.MyLock, never, holdfast.WaitAtMost(0))
		world.WantErr(t, err, holdfast.ErrBusy)
		if errors.Is(err, context.DeadlineExceeded) || w.Now() != started || q.Runs(world.LockRun) != asked+1 {
			t.Errorf("%v after %v, asked %d times", err, w.Now()-started, q.Runs(world.LockRun)-asked)
		}
		multi, quorum := holdfast.NewMultiLock(q.MyLock), holdfast.NewQuorum(world.Name, []*holdfast.Client{q.Client})
		world.WantErr(t, holdfast.Do(t.Context(), multi, never, holdfast.WaitAtMost(0)), holdfast.ErrBusy)
		world.WantErr(t, holdfast.Do(t.Context(), quorum, never, holdfast.WaitAtMost(0)), holdfast.ErrBusy)
		w.Release(l)
		ran := false
		err = holdfast.Do(t.Context(), q.MyLock, func(context.Context) error { ran = true; return nil }, holdfast.WaitAtMost(0))
		if err != nil || !ran {
			t.Errorf("a free lock: %v, ran %v", err, ran)
		}
		w.Mini.Del("holdfast_quorum")
	})
}

func TestWaitAtMost_Unreachable(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		p.Unplug(true)
		never := func(context.Context) error { t.Error("work has run"); return nil }
		for most, want := range map[time.Duration]time.Duration{0: 3 * time.Second, time.Second: time.Second} {
			started := w.Now()
			err := holdfast.Do(t.Context(), p.MyLock, never, holdfast.WaitAtMost(most))
			world.WantErr(t, err, holdfast.ErrUnavailable)
			if errors.Is(err, holdfast.ErrBusy) || w.Now()-started != want {
				t.Errorf("at most %v: %v after %v", most, err, w.Now()-started)
			}
		}
		p.Unplug(false)
	})
}

// onlyLocks is a Lockable without TryLock.
type onlyLocks struct{ locker holdfast.Locker }

func (o onlyLocks) Lock(ctx context.Context) (*holdfast.Lease, error) { return o.locker.Lock(ctx) }

func TestWaitAtMost_BadArguments(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		never := func(context.Context) error { t.Error("work has run"); return nil }
		world.WantErr(t, holdfast.Do(t.Context(), p.MyLock, never, holdfast.WaitAtMost(-1)), holdfast.ErrBadArgument)
		world.WantErr(t, holdfast.Do(t.Context(), onlyLocks{p.MyLock}, never, holdfast.WaitAtMost(0)), holdfast.ErrBadArgument)
		if err := holdfast.Do(t.Context(), onlyLocks{p.MyLock}, func(context.Context) error { return nil }, holdfast.WaitAtMost(1)); err != nil {
			t.Errorf("a lock that is free at once: %v", err)
		}
		w.WantFree()
	})
}
