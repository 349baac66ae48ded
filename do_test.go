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
	"github.com/holdfast-go/holdfast/lease"
)

func TestDo(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		ran := false
		err := holdfast.Do(t.Context(), p.mutex, func(ctx context.Context) error {
			ran = true
			if got := w.holders(name); len(got) != 1 {
				t.Errorf("held by %q", got)
			}
			w.release(w.lock(ctx, p.mutex)) // a lock with ctx is nested
			wantEnd(t, ctx, nil)
			return nil
		})
		if err != nil || !ran {
			t.Errorf("%v, ran %v", err, ran)
		}
		w.wantFree()
	})
}

func TestDo_Errors(t *testing.T) {
	work := errors.New("work failed")
	for _, tc := range []struct {
		what    string
		during  func(w *world, ctx context.Context) error
		matches []error
		not     []error
	}{
		{"work fails", func(*world, context.Context) error { return work },
			[]error{work}, []error{holdfast.ErrLost}},
		{"lost, work does not notice", func(w *world, ctx context.Context) error { w.mini.Del(name); <-ctx.Done(); return nil },
			[]error{holdfast.ErrLost}, []error{work}},
		{"lost, work fails", func(w *world, ctx context.Context) error { w.mini.Del(name); <-ctx.Done(); return work },
			[]error{holdfast.ErrLost, work}, nil},
		{"lost, work returns the cause", func(w *world, ctx context.Context) error {
			w.mini.Del(name)
			<-ctx.Done()
			return context.Cause(ctx)
		}, []error{holdfast.ErrLost}, nil},
		{"lost unnoticed, found at the release", func(w *world, _ context.Context) error { w.mini.Del(name); return nil },
			[]error{holdfast.ErrLost}, nil},
	} {
		t.Run(tc.what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				err := holdfast.Do(t.Context(), p.mutex, func(ctx context.Context) error { return tc.during(w, ctx) })
				wantErr(t, err, tc.matches...)
				for _, target := range tc.not {
					if errors.Is(err, target) {
						t.Errorf("%v matches %v", err, target)
					}
				}
				w.wantFree()
			})
		})
	}
}

func TestDo_ReleaseFails(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		work := errors.New("work failed")
		err := holdfast.Do(t.Context(), p.mutex, func(context.Context) error {
			p.unplug(true)
			return work
		})
		wantErr(t, err, work, context.DeadlineExceeded)
		w.at(31 * time.Second)
	})
}

func TestDo_NotAcquired(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		l := w.lock(t.Context(), p.mutex)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := holdfast.Do(ctx, q.mutex, func(context.Context) error {
			t.Error("work has run")
			return nil
		}, holdfast.OnAcquire(func(context.Context, string) { t.Error("the hook of the grant has run") }),
			holdfast.OnExit(func(context.Context, string, error) { t.Error("the hook of the exit has run") }))
		wantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
		w.release(l)
	})
}

func TestDo_Panic(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		var seen []string
		func() {
			defer func() {
				if r := recover(); r != "work panics" {
					t.Errorf("recovered %v", r)
				}
			}()
			_ = holdfast.Do(t.Context(), p.mutex, func(context.Context) error { panic("work panics") },
				holdfast.OnAcquire(func(context.Context, string) { seen = append(seen, "acquired") }),
				holdfast.OnExit(func(context.Context, string, error) { seen = append(seen, "exit") }))
		}()
		w.wantFree()
		if !slices.Equal(seen, []string{"acquired", "exit"}) {
			t.Errorf("hooks %q", seen)
		}
	})
}

// When the caller's context ends while the work runs, the lock is released.
func TestDo_Cancelled(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		ctx, cancel := context.WithCancel(t.Context())
		err := holdfast.Do(ctx, p.mutex, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		wantErr(t, err, context.Canceled)
		w.wantFree()
	})
}

func TestSyncLocker(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		shared := []sync.Locker{holdfast.SyncLocker(t.Context(), p.mutex), holdfast.SyncLocker(t.Context(), q.mutex)}
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
		w.wantFree()
	})
}

func TestSyncLocker_Panics(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
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
		locker := holdfast.SyncLocker(t.Context(), p.mutex)
		panics("Unlock of what is not locked", nil, locker.Unlock)
		locker.Lock()
		if got := w.holders(name); len(got) != 1 {
			t.Errorf("held by %q", got)
		}
		locker.Unlock()
		panics("Unlock, again", nil, locker.Unlock)

		locker.Lock()
		w.mini.Del(name)
		other := w.lock(t.Context(), q.mutex)
		panics("Unlock of what was lost", holdfast.ErrLost, locker.Unlock)
		w.wantHolder(other.Owner(), 1)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		panics("Lock in vain", holdfast.ErrBusy, holdfast.SyncLocker(ctx, p.mutex).Lock)
		w.release(other)
		panics("Lock with a bad argument", holdfast.ErrBadArgument, holdfast.SyncLocker(t.Context(), p.Mutex("")).Lock)
	})
}

func TestSyncLocker_Cond(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		cond := sync.NewCond(holdfast.SyncLocker(t.Context(), p.mutex))
		ready, seen := false, make(chan struct{})
		go func() {
			cond.L.Lock()
			for !ready {
				cond.Wait()
			}
			cond.L.Unlock()
			close(seen)
		}()
		w.at(time.Second)
		cond.L.Lock()
		ready = true
		cond.L.Unlock()
		cond.Broadcast()
		<-seen
		w.wantFree()
	})
}

// Goroutines that share a sync.Locker exclude each other. This is so even if its context carries a
// lease on the lock: then all of them wait for that lease to end.
func TestASyncLockerDoesNotReenter(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		s := holdfast.SyncLocker(l.Context(t.Context()), p.mutex)
		in, out := 0, make(chan any, 2)
		for range 2 {
			go func() {
				defer func() { out <- recover() }()
				s.Lock()
				in++
			}()
		}
		w.at(time.Second)
		if in > 0 {
			t.Errorf("%d are in beside the holder", in)
		}
		w.release(l) // this ends the context of the sync.Locker
		for range 2 {
			if err, ok := (<-out).(error); !ok || !errors.Is(err, context.Canceled) {
				t.Errorf("Lock panicked with %v", err)
			}
		}
	})
}

// An option that is nil is no option.
func TestANilDoOption(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		done := false
		err := holdfast.Do(t.Context(), w.process().mutex, func(context.Context) error {
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
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
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
		l := w.lock(t.Context(), p.mutex)
		_, err := q.mutex.TryLock(t.Context())
		only("busy", err, holdfast.ErrBusy)
		_, err = q.Mutex(name, holdfast.Fixed(0)).TryLock(t.Context())
		only("bad lease", err, holdfast.ErrBadArgument)
		_, err = q.mutex.Attach(t.Context(), lease.NewOwner("6e0e2d3c-0000-4000-8000-000000000000", 1))
		only("attach", err, holdfast.ErrLost)
		inner := w.lock(l.Context(t.Context()), p.mutex)
		_, err = l.Detach(t.Context())
		only("detach under an inner lease", err, holdfast.ErrBadArgument)
		w.release(inner)
		w.release(l)
		only("second release", l.Release(t.Context()), holdfast.ErrReleased)
		only("ended", l.Err(), holdfast.ErrReleased)
		short := w.lock(t.Context(), p.Mutex(name, holdfast.MaxHold(time.Second)))
		<-short.Done()
		only("held too long", short.Release(t.Context()), holdfast.ErrMaxHold)
		w.mini.FlushAll()
		lost := w.lock(t.Context(), p.Mutex(name, holdfast.Fixed(time.Second)))
		<-lost.Done()
		only("run out", lost.Err(), holdfast.ErrLost)
		w.rdb.Set(t.Context(), "text", 1, time.Second)
		_, err = p.Mutex("text").TryLock(t.Context())
		only("wrong type", err, holdfast.ErrWrongType)
		p.Close()
		_, err = p.mutex.Lock(t.Context())
		only("closed", err, holdfast.ErrClosed)
	})
}
