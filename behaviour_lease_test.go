// This file is about how long a lock is held: the watchdog, fixed leases, nesting, Extend, and
// MaxHold.

package holdfast_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lease"
)

func TestWatchdog(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		w.at(10*time.Second - 20*time.Millisecond)
		w.wantTTL(20*time.Second + 20*time.Millisecond)
		for _, due := range []time.Duration{10 * time.Second, 20 * time.Second} {
			w.at(due + 100*time.Millisecond)
			// Renewals come up to one step of the wheel early, never late.
			within(t, "PTTL after the renewal", w.pttl(name), 29_890*time.Millisecond, 29_900*time.Millisecond)
		}
		w.at(25 * time.Second)
		w.release(l)
		w.wantFree()
		w.at(100 * time.Second)
		times := p.times(renewRun)
		if len(times) != 2 {
			t.Errorf("renewals at %v, want 2", times)
		}
		for i, at := range times {
			due := time.Duration(i+1) * 10 * time.Second
			within(t, "renewal", at, due-time.Duration(i+1)*5*time.Millisecond, due)
		}
	})
}

func TestHeldFor100Seconds(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		ctx := l.Context(t.Context())
		for w.now() < 100*time.Second {
			w.at(w.now() + 250*time.Millisecond)
			if w.pttl(name) < 19_900*time.Millisecond {
				t.Fatalf("at %v: PTTL %v", w.now(), w.pttl(name))
			}
		}
		wantEnd(t, ctx, nil)
		w.release(l)
	})
}

func TestLeaseOf60Seconds(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process(holdfast.WithDefaults(holdfast.Renewed(60 * time.Second)))
		l := w.lock(t.Context(), p.mutex)
		w.wantTTL(60 * time.Second)
		w.at(65 * time.Second)
		times := p.times(renewRun)
		if len(times) != 3 {
			t.Fatalf("renewals at %v, want every 20 s", times)
		}
		for i, at := range times {
			within(t, "renewal", at, time.Duration(i+1)*(20*time.Second-5*time.Millisecond), time.Duration(i+1)*20*time.Second)
		}
		w.release(l)
	})
}

func TestOneRenewalPerHold(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		leases := []*lease.Lease{w.lock(t.Context(), p.mutex)}
		for range 4 {
			leases = append(leases, w.lock(leases[0].Context(t.Context()), p.mutex))
		}
		w.at(35 * time.Second)
		if n := p.runs(renewRun); n != 3 {
			t.Errorf("%d renewals of a hold with 5 leases in 35 s, want 3", n)
		}
		for _, l := range leases {
			w.release(l)
		}
	})
}

// Holds that fall due together are renewed together, in one script, and each is lost by itself.
func TestManyRenewedInOneScript(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		names := []string{"a", "gone", "b", "wrong", "c"}
		leases := make(map[string]*lease.Lease)
		for _, n := range names {
			leases[n] = w.lock(t.Context(), p.Mutex(n))
		}
		leases["longer"] = w.lock(t.Context(), p.Mutex("longer", holdfast.Renewed(time.Minute)))
		w.at(12 * time.Second)
		if many, one := p.runs(manyRun), p.runs(renewRun); many != 1 || one != 0 {
			t.Errorf("renewed by %d and %d runs, want one for all", many, one)
		}
		w.mini.Del("gone")
		w.mini.Del("wrong")
		w.rdb.Set(t.Context(), "wrong", "precious", 0)

		w.at(20*time.Second + 100*time.Millisecond)
		for _, n := range []string{"a", "b", "c"} {
			within(t, n+" has left", w.pttl(n), 29_800*time.Millisecond, 30*time.Second)
		}
		wantErr(t, leases["gone"].Err(), holdfast.ErrLost)
		wantErr(t, leases["wrong"].Err(), holdfast.ErrLost, holdfast.ErrWrongType)
		if got := w.rdb.Get(t.Context(), "wrong").Val(); got != "precious" {
			t.Errorf("what stood in the lock's place is %q", got)
		}
		w.at(40 * time.Second)
		if got := w.mini.Exists("gone"); got {
			t.Error("what was gone was made anew")
		}
		w.mini.Del("wrong")
		for _, n := range []string{"a", "b", "c", "longer"} {
			w.release(leases[n])
		}
	})
}

func TestFixedLease(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		l := w.lock(t.Context(), p.Mutex(name, holdfast.Fixed(10*time.Second)))
		ctx := l.Context(t.Context())
		within(t, "deadline", l.Deadline().Sub(w.start), 9_890*time.Millisecond, 10*time.Second)

		w.at(9_880 * time.Millisecond)
		wantEnd(t, ctx, nil)
		w.at(10*time.Second - time.Millisecond)
		wantEnd(t, ctx, holdfast.ErrExpired)
		wantErr(t, l.Err(), holdfast.ErrExpired, holdfast.ErrLost)
		w.wantTTL(time.Millisecond)
		w.at(10 * time.Second)
		w.wantFree()
		if n := p.runs(renewRun); n != 0 {
			t.Errorf("%d renewals", n)
		}

		next := w.lock(t.Context(), q.mutex)
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
		w.at(11 * time.Second)
		before := w.mini.Snapshot()
		wantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		if after := w.mini.Snapshot(); after != before {
			t.Errorf("the late release changed\n%s to\n%s", before, after)
		}
		w.release(next)
	})
}

// gone has the ways in which the server can lose the lock.
var gone = map[string]func(w *world){
	"deleted": func(w *world) { w.mini.Del(name) },
	"flushed": func(w *world) { w.mini.FlushAll() },
	"taken by another": func(w *world) {
		w.mini.Del(name)
		w.rdb.HSet(w.t.Context(), name, "6e0e2d3c-0000-4000-8000-000000000000:1", 1)
		w.rdb.PExpire(w.t.Context(), name, 15*time.Second)
	},
}

func TestARenewalOfWhatIsGone(t *testing.T) {
	for how, lose := range gone {
		t.Run(how, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				l := w.lock(t.Context(), p.mutex)
				ctx := l.Context(t.Context())
				w.at(12 * time.Second) // after the first renewal
				lose(w)
				before := w.holders(name)
				<-ctx.Done()
				wantEnd(t, ctx, holdfast.ErrLost)
				within(t, "told at", w.now(), 19_900*time.Millisecond, 20_100*time.Millisecond)
				if after := w.holders(name); !slices.Equal(before, after) {
					t.Errorf("the renewal made %q of %q", after, before)
				}
				renewals := p.runs(renewRun)
				w.at(60 * time.Second)
				if n := p.runs(renewRun); n != renewals {
					t.Errorf("%d renewals after the loss", n-renewals)
				}
				wantErr(t, l.Release(t.Context()), holdfast.ErrLost)
			})
		})
	}
}

func TestUnreachableRedisIsLossAtTheDeadline(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		ctx := l.Context(t.Context())
		w.at(15 * time.Second) // the lease was renewed at 10 s
		p.unplug(true)
		<-ctx.Done()
		wantEnd(t, ctx, holdfast.ErrLost)
		within(t, "told at", w.now(), 39_600*time.Millisecond, 39_990*time.Millisecond)
		if left := w.pttl(name); left <= 0 {
			t.Errorf("told when Redis had given the lock up (PTTL %v)", left)
		}
		p.unplug(false)
		w.at(41 * time.Second)
		w.wantFree()
	})
}

func TestRenewalsGoOnAfterAnOutage(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		w.at(9 * time.Second)
		p.unplug(true)
		w.at(28 * time.Second)
		p.unplug(false)
		w.at(29 * time.Second)
		if got := w.pttl(name); got < 29*time.Second {
			t.Errorf("PTTL %v a second after the outage", got)
		}
		w.release(l)
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
		t.Run(tc.what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				outer := w.lock(t.Context(), p.Mutex(name, tc.outer))
				ctx := outer.Context(t.Context())
				w.at(time.Second)
				inner := w.lock(ctx, p.Mutex(name, tc.inner))
				w.wantTTL(tc.entered)
				w.wantHolder(outer.Owner(), 2)
				w.at(2 * time.Second)
				w.release(inner)
				w.wantTTL(tc.left)
				w.wantHolder(outer.Owner(), 1)

				w.at(9500 * time.Millisecond)
				wantEnd(t, ctx, nil)
				if tc.renewed {
					w.at(200 * time.Second)
					wantEnd(t, ctx, nil)
					w.release(outer)
					w.wantFree()
					return
				}
				<-ctx.Done()
				wantEnd(t, ctx, holdfast.ErrLost)
				within(t, "ended at", w.now(), tc.outlived*98/100, tc.outlived)
				w.at(100 * time.Second)
				w.wantFree()
			})
		})
	}
}

// When a fixed lease inside a renewed hold runs out, it ends alone and the outer lease goes on.
func TestFixedRunsOutInsideRenewed(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		outer := w.lock(t.Context(), p.mutex)
		outerCtx := outer.Context(t.Context())
		inner := w.lock(outerCtx, p.Mutex(name, holdfast.Fixed(5*time.Second)))
		innerCtx := inner.Context(t.Context())
		<-innerCtx.Done()
		wantEnd(t, innerCtx, holdfast.ErrLost)
		within(t, "ended at", w.now(), 4900*time.Millisecond, 5*time.Second)
		wantErr(t, inner.Release(t.Context()), holdfast.ErrLost)
		w.at(60 * time.Second)
		wantEnd(t, outerCtx, nil)
		w.wantHolder(outer.Owner(), 1)
		w.release(outer)
		w.wantFree()
	})
}

func TestExtend(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.Mutex(name, holdfast.Fixed(10*time.Second)))
		ctx := l.Context(t.Context())
		w.at(5 * time.Second)
		if err := l.Extend(t.Context(), 3*time.Second); err != nil {
			t.Fatal(err)
		}
		w.wantTTL(5 * time.Second) // Extend never shortens
		if err := l.Extend(t.Context(), 20*time.Second); err != nil {
			t.Fatal(err)
		}
		w.wantTTL(20 * time.Second)
		w.at(24 * time.Second)
		wantEnd(t, ctx, nil)
		<-ctx.Done()
		within(t, "ended at", w.now(), 24_790*time.Millisecond, 25*time.Second)
		wantErr(t, l.Extend(t.Context(), time.Minute), holdfast.ErrLost)
		w.at(25 * time.Second)
		w.wantFree()
		wantErr(t, l.Extend(t.Context(), time.Millisecond), holdfast.ErrBadArgument)
	})
}

func TestMaxHold(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.Mutex(name, holdfast.MaxHold(time.Minute)))
		ctx := l.Context(t.Context())
		w.at(59 * time.Second)
		wantEnd(t, ctx, nil)
		<-ctx.Done()
		wantEnd(t, ctx, holdfast.ErrMaxHold)
		within(t, "ended at", w.now(), time.Minute-5*time.Millisecond, time.Minute)
		renewals := p.runs(renewRun)
		wantErr(t, l.Release(t.Context()), holdfast.ErrMaxHold)
		w.at(90 * time.Second)
		if n := p.runs(renewRun); n != renewals {
			t.Errorf("%d renewals after the end", n-renewals)
		}
		w.wantFree() // free at the latest when the last renewal runs out
	})
}

func TestMaxHoldIsOffByDefault(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		zero := w.lock(t.Context(), p.Mutex("other", holdfast.MaxHold(0)))
		time.Sleep(10 * time.Minute)
		w.release(l)
		w.release(zero)
	})
}

func TestHintThatTheHolderIsThisClient(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		l := w.lock(t.Context(), p.mutex)
		hinted := func(p *process) bool {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := p.mutex.Lock(ctx)
			wantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
			return strings.Contains(err.Error(), "this same Client")
		}
		if !hinted(p) {
			t.Error("the holder's own Client is not told")
		}
		if hinted(q) {
			t.Error("another Client is told that it holds the lock")
		}
		w.release(l)
	})
}
