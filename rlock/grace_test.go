// This file is about Grace: the lease ends while the lock is still held, and the work has time to stop; of nested
// leases, until the last of them is released.

package rlock_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

const grace = 12 * time.Second

// A holder that is cut off is notified that much before another can have the lock. If its work stops in
// time, its Release frees the lock at once; if not, the lock is free when the lease is over.
func TestGrace(t *testing.T) {
	for what, stops := range map[string]bool{"the work stops": true, "the work goes on": false} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Grace(grace)))
			ctx, next := l.Context(t.Context()), w.GoLock(t.Context(), q.MyLock)
			w.At(15 * time.Second)
			world.WantEnd(t, ctx, nil)
			world.Equal(t, p.Runs(world.RenewRun), 2, "%d renewals, want one every 6 s")
			p.Unplug(true)
			if left := time.Until(l.Deadline()); left < 14*time.Second || left > 15*time.Second {
				t.Errorf("its deadline is in %v", left)
			}
			<-l.Done()
			world.WantEnd(t, ctx, holdfast.ErrLost)
			world.Within(t, "notified at", w.Now(), 29*time.Second, 30*time.Second)
			world.Within(t, "PTTL", w.PTTL(world.Name), grace, grace+time.Second)
			p.Unplug(false)
			w.At(41 * time.Second)
			w.WantHolder(l.Owner(), 1)
			if stops {
				world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
			} else {
				w.At(42*time.Second + 200*time.Millisecond)
			}
			synctest.Wait()
			w.Release(granted(t, next))
		})
	}
}

// A lease that has half a second without its grace is renewed often enough, even if one reply in three comes too late.
func TestGrace_AHealthyLeaseGoesOn(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		p.Each(func(s world.Sending) redistest.Fault {
			if s.Script == world.RenewRun && s.N%3 == 0 {
				return redistest.DelayReply(time.Second)
			}
			return redistest.Pass
		})
		l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Renewed(3*time.Second), holdfast.Grace(2500*time.Millisecond)))
		w.At(time.Minute)
		must(t, l.Err())
		w.Release(l)
	})
}

// The lease ends, and the key stays for the grace, or after MaxHold: work may still be going on. A renewal that is under
// way, and a request that was never answered, change nothing about this. A Release frees the key.
func TestGrace_TheKeyStays(t *testing.T) {
	for what, tc := range map[string]struct {
		late, early holdfast.LeaseOption // the lease ends after its first renewal, or before
		cause       error
		stays       time.Duration // if a renewal is under way
	}{
		"for the grace": {holdfast.Grace(time.Second), holdfast.Grace(2500 * time.Millisecond), holdfast.ErrLost, 2900 * time.Millisecond},
		// By then the key would be gone without that renewal.
		"after MaxHold": {holdfast.MaxHold(1200 * time.Millisecond), holdfast.MaxHold(200 * time.Millisecond), holdfast.ErrMaxHold, 3500 * time.Millisecond},
	} {
		play(t, what+", with a renewal under way", func(t *testing.T, w *world.World) {
			p := w.Process()
			answer := make(chan struct{})
			p.Each(func(s world.Sending) redistest.Fault {
				switch {
				case s.Script != world.RenewRun:
					return redistest.Pass
				case s.N == 1:
					return redistest.HoldReply(answer)
				default:
					return redistest.DropBefore
				}
			})
			l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Renewed(3*time.Second), tc.late))
			<-l.Done()
			world.WantErr(t, l.Err(), tc.cause)
			close(answer)
			w.At(tc.stays)
			w.WantHolder(l.Owner(), 1)
			world.WantErr(t, l.Release(t.Context()), tc.cause)
			w.At(3600 * time.Millisecond) // a connection may have to be made first; by that renewal the key would stay for longer
			w.WantFree()
		})
		play(t, what+", with a request that was not answered", func(t *testing.T, w *world.World) {
			p := w.Process()
			p.On(world.LockRun, 1, redistest.CloseAfterExec)
			l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Renewed(3*time.Second), tc.early))
			p.Unplug(true)
			<-l.Done()
			world.WantErr(t, l.Err(), tc.cause)
			p.Unplug(false)
			w.At(w.Now() + 2*time.Second)
			w.WantHolder(l.Owner(), 1)
			world.WantErr(t, l.Release(t.Context()), tc.cause)
			w.At(2900 * time.Millisecond)
			w.WantFree()
		})
	}
}

// An Extend of a fixed lease that an outage held up until only the grace is left does nothing.
func TestGrace_AnExtendComesTooLate(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Fixed(20*time.Second), holdfast.Grace(grace)))
		p.Unplug(true)
		extended := make(chan error, 1)
		go func() { extended <- l.Extend(context.Background(), time.Minute) }()
		<-l.Done()
		p.Unplug(false)
		world.WantErr(t, <-extended, holdfast.ErrExpired)
		w.At(w.Now() + time.Second)
		if left := w.PTTL(world.Name); left > grace {
			t.Errorf("the key stays for %v", left)
		}
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrExpired)
	})
}

// What sets when a lease ends counts for the holder: Extend, a fixed lease, a hand-over by a message, a pass
// within the process, and a nested lease, each with its own grace.
func TestGrace_OfEachLease(t *testing.T) {
	wantLeft := func(t *testing.T, w *world.World, l *lease.Lease, left, inRedis time.Duration) {
		t.Helper()
		world.Within(t, "left", time.Until(l.Deadline()), left*98/100-10*time.Millisecond, left)
		world.Within(t, "PTTL", w.PTTL(world.Name), inRedis-30*time.Millisecond, inRedis)
	}
	play(t, "extended", func(t *testing.T, w *world.World) {
		l := w.Lock(t.Context(), w.Process().Mutex(world.Name, holdfast.Grace(grace)))
		must(t, l.Extend(t.Context(), 40*time.Second))
		wantLeft(t, w, l, 40*time.Second, 40*time.Second+grace)
		w.Release(l)
	})
	play(t, "fixed", func(t *testing.T, w *world.World) {
		l := w.Lock(t.Context(), w.Process().Mutex(world.Name, holdfast.Fixed(30*time.Second), holdfast.Grace(grace)))
		wantLeft(t, w, l, 18*time.Second, 30*time.Second)
		<-l.Done()
		world.WantErr(t, l.Err(), holdfast.ErrExpired)
		if text := l.Err().Error(); !strings.Contains(text, "after 18s") {
			t.Error(text)
		}
		w.At(29 * time.Second)
		w.WantHolder(l.Owner(), 1)
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrExpired)
		synctest.Wait()
		w.WantFree()
	})
	play(t, "handed over", func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		next := w.GoLock(t.Context(), q.Mutex(world.Name, holdfast.Grace(grace)))
		synctest.Wait()
		w.Release(l)
		handed := granted(t, next)
		wantLeft(t, w, handed, 18*time.Second, 30*time.Second)
		w.Release(handed)
	})
	play(t, "passed on", func(t *testing.T, w *world.World) {
		l, turns := cohort(w.Process(), 1, holdfast.Grace(grace))
		next, passed := passOn(w, l, turns)
		if !passed {
			t.Error("not passed on")
		}
		wantLeft(t, w, next, 18*time.Second, 30*time.Second)
		w.Release(next)
	})
	play(t, "nested", func(t *testing.T, w *world.World) {
		p := w.Process()
		outer := w.Lock(t.Context(), p.MyLock)
		inner := w.Lock(outer.Context(t.Context()), p.Mutex(world.Name, holdfast.Grace(grace)))
		p.Unplug(true)
		<-inner.Done()
		world.Within(t, "the inner one ended at", w.Now(), 17*time.Second, 18*time.Second)
		must(t, outer.Err())
		p.Unplug(false)
		w.At(w.Now() + time.Minute)
		must(t, outer.Err())
		w.WantHolder(outer.Owner(), 1)
		w.Release(outer)
	})
}

// A nested Lock is under way when the outer lease ends, and fails with it. The key stays all the same: for its
// grace, or as after each MaxHold and each fixed lease, until a Release frees it.
func TestGrace_ANestedLockIsUnderWay(t *testing.T) {
	for what, tc := range map[string]struct {
		options []holdfast.LeaseOption
		cause   error
	}{
		"a grace":    {[]holdfast.LeaseOption{holdfast.Grace(grace)}, holdfast.ErrLost},
		"a MaxHold":  {[]holdfast.LeaseOption{holdfast.MaxHold(5 * time.Second)}, holdfast.ErrMaxHold},
		"both fixed": {[]holdfast.LeaseOption{holdfast.Fixed(20 * time.Second), holdfast.Grace(grace)}, holdfast.ErrExpired},
	} {
		for _, when := range []string{"released afterwards", "released meanwhile", "not released"} {
			play(t, what+", "+when, func(t *testing.T, w *world.World) {
				p := w.Process()
				m := p.Mutex(world.Name, tc.options...)
				outer := w.Lock(t.Context(), m)
				p.Unplug(true)
				entered := w.GoLock(outer.Context(t.Context()), m)
				<-outer.Done()
				if when == "released meanwhile" {
					world.WantErr(t, outer.Release(t.Context()), tc.cause)
				}
				world.WantErr(t, second(entered.Result()), tc.cause)
				p.Unplug(false)
				w.At(w.Now() + 2*time.Second)
				if when != "released meanwhile" {
					w.WantHolder(outer.Owner(), 1)
				}
				switch when {
				case "released afterwards":
					world.WantErr(t, outer.Release(t.Context()), tc.cause)
					w.At(w.Now() + 2*time.Second) // the connections of before may have to be made anew
				case "not released":
					w.At(w.Now() + time.Minute)
				}
				w.WantFree()
			})
		}
	}
}

// Nested leases end together. The key stays until each of them is released: work may go on under the other.
func TestGrace_TheKeyStaysForTheOuterLease(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		m := p.Mutex(world.Name, holdfast.Grace(grace))
		outer := w.Lock(t.Context(), m)
		inner := w.Lock(outer.Context(t.Context()), m)
		early := w.Lock(outer.Context(t.Context()), m)
		must(t, early.Release(t.Context()))
		p.Unplug(true)
		<-outer.Done()
		p.Unplug(false)
		world.WantErr(t, early.Release(t.Context()), holdfast.ErrReleased)
		for range 2 {
			world.WantErr(t, inner.Release(t.Context()), holdfast.ErrLost)
			w.At(w.Now() + time.Second)
			w.WantHolder(outer.Owner(), 2)
		}
		world.WantErr(t, outer.Release(t.Context()), holdfast.ErrLost)
		w.At(w.Now() + 2*time.Second) // a connection may have to be made first
		w.WantFree()
	})
}
