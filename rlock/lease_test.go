// This file is about how long a lock is held: the watchdog, fixed leases, nesting, Extend, and
// MaxHold.

package rlock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// A lease is renewed when a third of it is over: up to one step of the wheel early, never late.
func TestWatchdog(t *testing.T) {
	for _, length := range []time.Duration{30 * time.Second, 60 * time.Second} {
		play(t, length.String(), func(t *testing.T, w *world.World) {
			p := w.Process(holdfast.WithDefaults(holdfast.Renewed(length)))
			l := w.Lock(t.Context(), p.MyLock)
			w.At(length/3 - 20*time.Millisecond)
			w.WantTTL(length*2/3 + 20*time.Millisecond)
			for i := range time.Duration(10) {
				w.At((i+1)*length/3 + 100*time.Millisecond)
				world.Within(t, "PTTL after the renewal", w.PTTL(world.Name), length-150*time.Millisecond, length-100*time.Millisecond)
			}
			w.Release(l)
			w.WantFree()
			w.At(5 * length)
			times := p.Times(world.RenewRun)
			if len(times) != 10 {
				t.Errorf("renewals at %v, want 10", times)
			}
			for i, at := range times {
				n := time.Duration(i + 1)
				world.Within(t, "renewal", at, n*(length/3-5*time.Millisecond), n*length/3)
			}
		})
	}
}

// A hold is renewed once, however many leases are on it. Holds that fall due together are renewed
// together, in one script, and each is lost alone.
func TestManyRenewedInOneScript(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		leases := make(map[string]*lease.Lease)
		for _, n := range []string{"a", "gone", "b", "wrong", "c"} {
			leases[n] = w.Lock(t.Context(), p.Mutex(n))
		}
		leases["inner"] = w.Lock(leases["a"].Context(t.Context()), p.Mutex("a"))
		leases["longer"] = w.Lock(t.Context(), p.Mutex("longer", holdfast.Renewed(time.Minute)))
		w.At(12 * time.Second)
		if many, one := p.Runs(world.ManyRun), p.Runs(world.RenewRun); many != 1 || one != 0 {
			t.Errorf("renewed by %d and %d runs, want one for all", many, one)
		}
		w.Mini.Del("gone")
		overwrite(w, "wrong")
		w.At(20*time.Second + 100*time.Millisecond)
		for _, n := range []string{"a", "b", "c"} {
			world.Within(t, n+" has left", w.PTTL(n), 29_800*time.Millisecond, 30*time.Second)
		}
		world.WantErr(t, leases["gone"].Err(), holdfast.ErrLost)
		world.WantErr(t, leases["wrong"].Err(), holdfast.ErrLost, holdfast.ErrWrongType)
		w.At(40 * time.Second)
		wantPrecious(w, "wrong")
		if w.Mini.Exists("gone") {
			t.Error("what was gone was made anew")
		}
		w.Release(leases["inner"], leases["a"], leases["b"], leases["c"], leases["longer"])
	})
}

// A fixed lease is not renewed, and ends just before its key does.
func TestFixedLease(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Fixed(10*time.Second)))
		ctx := l.Context(t.Context())
		world.Within(t, "deadline", l.Deadline().Sub(w.Start), 9_890*time.Millisecond, 10*time.Second)
		w.At(9_880 * time.Millisecond)
		world.WantEnd(t, ctx, nil)
		w.At(10*time.Second - time.Millisecond)
		world.WantEnd(t, ctx, holdfast.ErrExpired)
		world.WantErr(t, l.Err(), holdfast.ErrExpired, holdfast.ErrLost)
		w.WantTTL(time.Millisecond)
		w.At(10 * time.Second)
		w.WantFree()
		if n := p.Runs(world.RenewRun); n != 0 {
			t.Errorf("%d renewals", n)
		}
	})
}

func TestUnreachableRedisIsLossAtTheDeadline(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		ctx := l.Context(t.Context())
		w.At(15 * time.Second) // the lease was renewed at 10 s
		p.Unplug(true)
		<-ctx.Done()
		world.WantEnd(t, ctx, holdfast.ErrLost)
		world.Within(t, "told at", w.Now(), 39_600*time.Millisecond, 39_990*time.Millisecond)
		if left := w.PTTL(world.Name); left <= 0 {
			t.Errorf("told when Redis had given the lock up (PTTL %v)", left)
		}
		p.Unplug(false)
		w.At(41 * time.Second)
		w.WantFree()
	})
}

// A nested lock may prolong the time to live, and its release shortens nothing.
func TestNesting(t *testing.T) {
	for _, tc := range []struct {
		what         string
		outer, inner lease.Option
		entered      time.Duration // PTTL after the nested Lock, 1 s after the first
		left         time.Duration // PTTL after its release, 1 s later
		renewed      bool          // whether the outer lease is renewed after that
		outlived     time.Duration // when the outer lease ends by itself; 0 means never
	}{
		{"renewed in renewed", holdfast.Renewed(30 * time.Second), holdfast.Renewed(30 * time.Second),
			30 * time.Second, 29 * time.Second, true, 0},
		{"shorter renewed in renewed", holdfast.Renewed(30 * time.Second), holdfast.Renewed(9 * time.Second),
			29 * time.Second, 28 * time.Second, true, 0},
		{"longer renewed in renewed", holdfast.Renewed(30 * time.Second), holdfast.Renewed(90 * time.Second),
			90 * time.Second, 89 * time.Second, true, 0},
		{"fixed in renewed", holdfast.Renewed(30 * time.Second), holdfast.Fixed(10 * time.Second),
			29 * time.Second, 28 * time.Second, true, 0},
		{"longer fixed in renewed", holdfast.Renewed(30 * time.Second), holdfast.Fixed(60 * time.Second),
			60 * time.Second, 59 * time.Second, true, 0},
		{"renewed in fixed", holdfast.Fixed(10 * time.Second), holdfast.Renewed(30 * time.Second),
			30 * time.Second, 29 * time.Second, false, 10 * time.Second},
		{"fixed in fixed", holdfast.Fixed(10 * time.Second), holdfast.Fixed(5 * time.Second),
			9 * time.Second, 8 * time.Second, false, 10 * time.Second},
		{"longer fixed in fixed", holdfast.Fixed(10 * time.Second), holdfast.Fixed(20 * time.Second),
			20 * time.Second, 19 * time.Second, false, 10 * time.Second},
	} {
		play(t, tc.what, func(t *testing.T, w *world.World) {
			p := w.Process()
			outer := w.Lock(t.Context(), p.Mutex(world.Name, tc.outer))
			ctx := outer.Context(t.Context())
			w.At(time.Second)
			inner := w.Lock(ctx, p.Mutex(world.Name, tc.inner))
			w.WantTTL(tc.entered)
			w.WantHolder(outer.Owner(), 2)
			w.At(2 * time.Second)
			w.Release(inner)
			w.WantTTL(tc.left)
			w.WantHolder(outer.Owner(), 1)

			w.At(9500 * time.Millisecond)
			world.WantEnd(t, ctx, nil)
			if tc.renewed {
				w.At(200 * time.Second)
				world.WantEnd(t, ctx, nil)
				w.Release(outer)
				w.WantFree()
				return
			}
			<-ctx.Done()
			world.WantEnd(t, ctx, holdfast.ErrLost)
			world.Within(t, "ended at", w.Now(), tc.outlived*98/100, tc.outlived)
			w.At(100 * time.Second)
			w.WantFree()
		})
	}
}

// When a fixed lease inside a renewed hold runs out, it ends alone and the outer lease goes on.
func TestFixedRunsOutInsideRenewed(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		outer := w.Lock(t.Context(), p.MyLock)
		outerCtx := outer.Context(t.Context())
		inner := w.Lock(outerCtx, p.Mutex(world.Name, holdfast.Fixed(5*time.Second)))
		innerCtx := inner.Context(t.Context())
		<-innerCtx.Done()
		world.WantEnd(t, innerCtx, holdfast.ErrLost)
		world.Within(t, "ended at", w.Now(), 4900*time.Millisecond, 5*time.Second)
		world.WantErr(t, inner.Release(t.Context()), holdfast.ErrLost)
		w.At(60 * time.Second)
		world.WantEnd(t, outerCtx, nil)
		w.WantHolder(outer.Owner(), 1)
		w.Release(outer)
		w.WantFree()
	})
}

// The error of a wait says so if the holder is the waiter's own Client, and only then.
func TestHintThatTheHolderIsThisClient(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		for _, of := range []*world.Process{p, q} {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			err := second(of.MyLock.Lock(ctx))
			cancel()
			if strings.Contains(err.Error(), "this same Client") != (of == p) {
				t.Errorf("of the holder's Client: %v: %v", of == p, err)
			}
		}
		w.Release(l)
	})
}
