// This file is about how long a lock is held: the watchdog, fixed leases, nesting, Extend, MaxHold, and answers that come
// after something else has changed the lease.

package rlock_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
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
		world.Equal(t, w.RDB.Get(t.Context(), "wrong").Val(), "precious", "what stood in a lock's place is %q")
		w.Mini.Del("wrong")
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
		world.Equal(t, p.Runs(world.RenewRun), 0, "%d renewals")
	})
}

// A nested lock may prolong the time to live, and its release shortens nothing.
func TestNesting(t *testing.T) {
	for _, tc := range []struct {
		what         string
		outer, inner lease.Option
		entered      time.Duration // PTTL after the nested Lock, 1 s after the first
		left         time.Duration // PTTL after its release, 1 s later
		renewed      bool          // whether the outer lease is renewed after that, or ends after 10 s
	}{
		{"renewed in renewed", holdfast.Renewed(30 * time.Second), holdfast.Renewed(30 * time.Second), 30 * time.Second, 29 * time.Second, true},
		{"shorter renewed in renewed", holdfast.Renewed(30 * time.Second), holdfast.Renewed(9 * time.Second), 29 * time.Second, 28 * time.Second, true},
		{"longer renewed in renewed", holdfast.Renewed(30 * time.Second), holdfast.Renewed(90 * time.Second), 90 * time.Second, 89 * time.Second, true},
		{"fixed in renewed", holdfast.Renewed(30 * time.Second), holdfast.Fixed(10 * time.Second), 29 * time.Second, 28 * time.Second, true},
		{"longer fixed in renewed", holdfast.Renewed(30 * time.Second), holdfast.Fixed(60 * time.Second), 60 * time.Second, 59 * time.Second, true},
		{"renewed in fixed", holdfast.Fixed(10 * time.Second), holdfast.Renewed(30 * time.Second), 30 * time.Second, 29 * time.Second, false},
		{"fixed in fixed", holdfast.Fixed(10 * time.Second), holdfast.Fixed(5 * time.Second), 9 * time.Second, 8 * time.Second, false},
		{"longer fixed in fixed", holdfast.Fixed(10 * time.Second), holdfast.Fixed(20 * time.Second), 20 * time.Second, 19 * time.Second, false},
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
			world.Within(t, "ended at", w.Now(), 9800*time.Millisecond, 10*time.Second)
			w.At(100 * time.Second)
			w.WantFree()
		})
	}
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

// slowRenewal locks with a lease of 3 s and waits until a renewal is sent. Redis executes the
// renewal, and its answer comes once the channel is closed.
func slowRenewal(p *world.Process) (*holdfast.Lease, chan struct{}) {
	w := p.W
	w.T.Helper()
	l := w.Lock(w.T.Context(), p.Mutex(world.Name, holdfast.Renewed(3*time.Second)))
	answer := make(chan struct{})
	p.On(world.RenewRun, 1, redistest.HoldReply(answer))
	before := p.Runs(world.RenewRun)
	w.At(w.Now() + 1100*time.Millisecond)
	if n := p.Runs(world.RenewRun) - before; n != 1 {
		w.T.Fatalf("%d renewals", n)
	}
	return l, answer
}

// A renewal is sent before Extend or before a fixed nested lock, and is answered after it. The
// answer takes nothing from what Extend or the fixed lease has promised.
func TestARenewalThatWasOvertakenShortensNothing(t *testing.T) {
	play(t, "Extend", func(t *testing.T, w *world.World) {
		p := w.Process()
		l, answer := slowRenewal(p)
		begin := w.Now()
		must(t, l.Extend(t.Context(), time.Minute))
		before := l.Deadline()
		close(answer)
		synctest.Wait()
		if after := l.Deadline(); after.Before(before) {
			t.Errorf("the deadline went back by %v", before.Sub(after))
		}
		p.Unplug(true)
		w.At(begin + 59*time.Second)
		must(t, l.Err())
		p.Unplug(false)
		w.At(w.Now() + 5*time.Second)
		_ = l.Release(t.Context())
	})
	play(t, "a fixed lease", func(t *testing.T, w *world.World) {
		p := w.Process()
		outer, answer := slowRenewal(p)
		begin := w.Now()
		inner := w.Lock(outer.Context(t.Context()), p.Mutex(world.Name, holdfast.Fixed(20*time.Second)))
		w.Release(outer)
		close(answer)
		w.At(begin + 19*time.Second)
		must(t, inner.Err())
		w.Release(inner)
	})
}

// The renewal after an overtaken one counts in full again: the hold believes what Redis says of it.
func TestARenewalAfterAnOvertakenOneMayShorten(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l, answer := slowRenewal(p)
		must(t, l.Extend(t.Context(), time.Minute))
		close(answer)
		w.RDB.PExpire(t.Context(), world.Name, 2*time.Second) // as on a replica that knows of no Extend
		w.At(w.Now() + 1100*time.Millisecond)
		if left := time.Until(l.Deadline()); left > 3*time.Second {
			t.Errorf("the lease has %v left, in Redis %v", left, w.PTTL(world.Name))
		}
		w.Release(l)
	})
}

// A fixed lease ends before an Extend that Redis has done is answered. The key stays until all that ended with the lease
// are released.
func TestTheKeyIsFreedAfterAFixedLeaseWhoseExtendWasAnsweredLate(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		m := p.Mutex(world.Name, holdfast.Fixed(20*time.Second))
		l := w.Lock(t.Context(), m)
		inner := w.Lock(l.Context(t.Context()), m)
		p.On(world.RenewRun, 1, redistest.DelayReply(900*time.Millisecond))
		w.At(19300 * time.Millisecond)
		world.WantErr(t, l.Extend(t.Context(), time.Minute), holdfast.ErrExpired)
		world.WantErr(t, inner.Release(t.Context()), holdfast.ErrExpired)
		w.At(w.Now() + time.Second)
		w.WantHolder(l.Owner(), 2)
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrExpired)
		synctest.Wait()
		w.WantFree()
	})
}

// Of two leases that are released at once, the one whose request finds a value of another type says no more of it than
// that the lock is released: the other says the rest.
func TestAReleaseThatAnotherHasOvertakenFindsAnotherType(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		inner := w.Lock(l.Context(t.Context()), p.MyLock)
		p.On(world.RecountRun, 1, redistest.Delay(300*time.Millisecond))
		w.RDB.Set(t.Context(), world.Name, "x", 0)
		first := w.Try(func() (*lease.Lease, error) { return nil, inner.Release(t.Context()) })
		synctest.Wait()
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		world.WantErr(t, second(first.Result()), holdfast.ErrReleased)
		w.RDB.Del(t.Context(), world.Name)
	})
}

// An Extend that a Release has overtaken says that the lease was released.
func TestExtendThatAReleaseHasOvertakenSaysReleased(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		arrive := make(chan struct{})
		p.On(world.RenewRun, 1, redistest.HoldUntil(arrive))
		extended := w.Try(func() (*lease.Lease, error) { return nil, l.Extend(t.Context(), time.Minute) })
		synctest.Wait()
		w.Release(l)
		close(arrive)
		err := second(extended.Result())
		world.WantErr(t, err, holdfast.ErrReleased)
	})
}

// The deadline of a lease counts by the monotonic clock, whatever has set the deadline. A wall
// clock that is set back while Redis is out of reach does not prolong a lease. This test runs in
// real time, since virtual time has no monotonic reading.
func TestTheDeadlineIsOnTheMonotonicClock(t *testing.T) {
	c := clienttest.OpenClient(t, redistest.Mini(t).Client())
	monotonic := func(what string, l *holdfast.Lease) {
		t.Helper()
		if d := l.Deadline(); !strings.Contains(d.String(), " m=") {
			t.Errorf("%s: the deadline %v has no monotonic reading", what, d)
		}
	}
	l := clienttest.Grab(t, c.Mutex(world.Name))
	monotonic("granted", l)
	inner, err := c.Mutex(world.Name, holdfast.Fixed(time.Minute)).Lock(l.Context(t.Context()))
	must(t, err)
	monotonic("a fixed one within it", inner)
	must(t, inner.Extend(t.Context(), 2*time.Minute))
	monotonic("extended", inner)
	clienttest.GiveBack(t, inner)
	l = attach(t, c.Mutex(world.Name, holdfast.MaxHold(time.Minute)), detach(t, l))
	monotonic("attached", l)
	clienttest.GiveBack(t, l)
}

// The longest possible durations overflow nothing.
func TestTheLongestDurations(t *testing.T) {
	for _, length := range []time.Duration{math.MaxInt64, math.MaxInt64 - 3*time.Second} {
		world.Play(t, func(t *testing.T, w *world.World) {
			p := w.Process()
			p.On(world.LockRun, 1, redistest.Silence)
			ctx, cancel := context.WithCancel(t.Context())
			a := w.GoLock(ctx, p.Mutex(world.Name, holdfast.Fixed(length)))
			synctest.Wait()
			cancel()
			world.WantErr(t, second(a.Result()), context.Canceled)
			w.At(w.Now() + 10*time.Second)
			w.WantFree()
		})
	}
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l, turns := cohort(p, 1, holdfast.Cohort(1000, math.MaxInt64))
		sent := p.Runs("")
		l, passed := passOn(w, l, turns)
		if n := p.Runs("") - sent; n != 0 || !passed {
			t.Errorf("%d requests for a lock that was to be passed on", n)
		}
		w.Release(l)
	})
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		m := p.Mutex(world.Name, holdfast.Renewed(math.MaxInt64), holdfast.MaxHold(math.MaxInt64))
		l := w.Lock(t.Context(), m)
		must(t, l.Extend(t.Context(), math.MaxInt64))
		inner := w.Lock(l.Context(t.Context()), m)
		w.At(w.Now() + time.Hour)
		must(t, l.Err())
		w.Release(inner, l)
	})
}
