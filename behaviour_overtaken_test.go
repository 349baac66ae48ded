// This file is about answers that come after something else has changed the lease.

package holdfast_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// slowRenewal locks with a lease of 3 s and waits until a renewal is sent. Redis executes the
// renewal, and its answer comes once the channel is closed.
func (p *process) slowRenewal(options ...holdfast.LeaseOption) (*holdfast.Lease, chan struct{}) {
	w := p.w
	w.t.Helper()
	l := w.lock(w.t.Context(), p.Mutex(name, append(options, holdfast.Renewed(3*time.Second))...))
	answer := make(chan struct{})
	p.on(renewRun, 1, redistest.HoldReply(answer))
	before := p.runs(renewRun)
	w.at(w.now() + 1100*time.Millisecond)
	if n := p.runs(renewRun) - before; n != 1 {
		w.t.Fatalf("%d renewals", n)
	}
	return l, answer
}

// A renewal is sent before Extend or before a fixed nested lock, and is answered after it. The
// answer takes nothing from what Extend or the fixed lease has promised.
func TestARenewalThatWasOvertakenShortensNothing(t *testing.T) {
	t.Run("Extend", func(t *testing.T) {
		play(t, func(t *testing.T, w *world) {
			p := w.process()
			l, answer := p.slowRenewal()
			begin := w.now()
			if err := l.Extend(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			before := l.Deadline()
			close(answer)
			synctest.Wait()
			if after := l.Deadline(); after.Before(before) {
				t.Errorf("the deadline went back by %v", before.Sub(after))
			}
			p.unplug(true)
			w.at(begin + 59*time.Second)
			if err := l.Err(); err != nil {
				t.Errorf("extended by a minute: %v", err)
			}
			p.unplug(false)
			w.at(w.now() + 5*time.Second)
			_ = l.Release(t.Context())
		})
	})
	t.Run("a fixed lease", func(t *testing.T) {
		play(t, func(t *testing.T, w *world) {
			p := w.process()
			outer, answer := p.slowRenewal()
			begin := w.now()
			inner := w.lock(outer.Context(t.Context()), p.Mutex(name, holdfast.Fixed(20*time.Second)))
			w.release(outer)
			close(answer)
			w.at(begin + 19*time.Second)
			if err := inner.Err(); err != nil {
				t.Errorf("a fixed lease of 20 s: %v, Redis has it for %v more", err, w.pttl(name))
			}
			w.release(inner)
		})
	})
}

// The renewal after an overtaken one counts in full again: the hold believes what Redis says of it.
func TestARenewalAfterAnOvertakenOneMayShorten(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l, answer := p.slowRenewal()
		if err := l.Extend(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		close(answer)
		w.rdb.PExpire(t.Context(), name, 2*time.Second) // as on a replica that knows of no Extend
		w.at(w.now() + 1100*time.Millisecond)
		if left := time.Until(l.Deadline()); left > 3*time.Second {
			t.Errorf("the lease has %v left, in Redis %v", left, w.pttl(name))
		}
		w.release(l)
	})
}

// MaxHold ends a lease and leaves the key, since work may still be going on. A renewal under way,
// or a request that was never answered, changes nothing about this. A Release frees the key.
func TestTheKeyStaysAfterMaxHold(t *testing.T) {
	t.Run("with a renewal under way", func(t *testing.T) {
		play(t, func(t *testing.T, w *world) {
			p := w.process()
			begin := w.now()
			l, answer := p.slowRenewal(holdfast.MaxHold(1200 * time.Millisecond))
			w.at(begin + 1250*time.Millisecond)
			wantErr(t, l.Err(), holdfast.ErrMaxHold)
			close(answer)
			w.at(begin + 3500*time.Millisecond) // after the end without that renewal
			if w.pttl(name) < 0 {
				t.Error("the key is gone, and nobody has released it")
			}
			wantErr(t, l.Release(t.Context()), holdfast.ErrMaxHold)
			synctest.Wait()
			w.wantFree()
		})
	})
	t.Run("with a request that was not answered", func(t *testing.T) {
		play(t, func(t *testing.T, w *world) {
			p := w.process()
			p.on(lockRun, 1, redistest.CloseAfterExec)
			l := w.lock(t.Context(), p.Mutex(name, holdfast.MaxHold(200*time.Millisecond)))
			<-l.Done()
			wantErr(t, l.Err(), holdfast.ErrMaxHold)
			w.at(w.now() + 2*time.Second)
			w.wantHolder(l.Owner(), 1)
			wantErr(t, l.Release(t.Context()), holdfast.ErrMaxHold)
			synctest.Wait()
			w.wantFree()
		})
	})
}

// A late request takes the lock again for a lease whose time is over. The client gives that hold
// up.
func TestALateRequestForALeaseThatHasEndedLeavesNothing(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		p.on(lockRun, 1, redistest.Delay(700*time.Millisecond))
		begin := w.now()
		locked := w.goLock(t.Context(), p.Mutex(name, holdfast.Fixed(600*time.Millisecond)))
		synctest.Wait()
		p.hangUp()
		l, err := locked.result()
		if err != nil {
			t.Fatal(err)
		}
		<-l.Done()
		w.at(begin + 750*time.Millisecond)
		if w.pttl(name) < 0 {
			t.Fatal("the late request has not granted")
		}
		w.at(begin + 1050*time.Millisecond)
		w.wantFree()
	})
}

// A lease that is granted after its MaxHold is over is given back, and the error says
// why.
func TestMaxHoldThatIsOverBeforeTheAnswer(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		m := p.Mutex(name, holdfast.MaxHold(time.Nanosecond))
		p.on(lockRun, 1, redistest.Delay(time.Millisecond))
		_, err := m.Lock(t.Context())
		wantErr(t, err, holdfast.ErrMaxHold)
		w.at(w.now() + time.Second)
		w.wantFree()
	})
}

// An Extend that a Release has overtaken says that the lease was released.
func TestExtendThatAReleaseHasOvertakenSaysReleased(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l := w.lock(t.Context(), p.mutex)
		arrive := make(chan struct{})
		p.on(renewRun, 1, redistest.HoldUntil(arrive))
		extended := w.try(func() (*lease.Lease, error) { return nil, l.Extend(t.Context(), time.Minute) })
		synctest.Wait()
		w.release(l)
		close(arrive)
		err := second(extended.result())
		wantErr(t, err, holdfast.ErrReleased)
	})
}

// The deadline of a lease counts by the monotonic clock, whatever has set the deadline. A wall
// clock that is set back while Redis is out of reach does not prolong a lease. This test runs in
// real time, since virtual time has no monotonic reading.
func TestTheDeadlineIsOnTheMonotonicClock(t *testing.T) {
	c := openClient(t, redistest.Mini(t).Client())
	m, ctx := c.Mutex(name), t.Context()
	took := func(l *holdfast.Lease, err error) *holdfast.Lease {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	monotonic := func(what string, l *holdfast.Lease) {
		t.Helper()
		if d := l.Deadline(); !strings.Contains(d.String(), " m=") {
			t.Errorf("%s: the deadline %v has no monotonic reading", what, d)
		}
	}
	l := took(m.Lock(ctx))
	monotonic("granted", l)
	inner := took(c.Mutex(name, holdfast.Fixed(time.Minute)).Lock(l.Context(ctx)))
	monotonic("a fixed one within it", inner)
	if err := inner.Extend(ctx, 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	monotonic("extended", inner)
	if err := inner.Release(ctx); err != nil {
		t.Fatal(err)
	}
	owner, err := l.Detach(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l = took(c.Mutex(name, holdfast.MaxHold(time.Minute)).Attach(ctx, owner))
	monotonic("attached", l)
	if err := l.Release(ctx); err != nil {
		t.Fatal(err)
	}
}

// The longest possible durations overflow nothing.
func TestTheLongestDurations(t *testing.T) {
	for _, length := range []time.Duration{math.MaxInt64, math.MaxInt64 - 3*time.Second} {
		play(t, func(t *testing.T, w *world) {
			p := w.process()
			p.each(func(s sending) redistest.Fault {
				if s.script == lockRun {
					return redistest.Silence
				}
				return redistest.Pass
			})
			ctx, cancel := context.WithCancel(t.Context())
			a := w.goLock(ctx, p.Mutex(name, holdfast.Fixed(length)))
			synctest.Wait()
			cancel()
			wantErr(t, second(a.result()), context.Canceled)
			w.at(w.now() + 10*time.Second)
			w.wantFree()
		})
	}
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l, turns := p.cohort(1, holdfast.Cohort(1000, math.MaxInt64))
		sent := p.runs("")
		w.release(l)
		next := <-turns
		if n := p.runs("") - sent; n != 0 {
			t.Errorf("%d requests for a lock that was to be passed on", n)
		}
		w.release(next)
	})
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		m := p.Mutex(name, holdfast.Renewed(math.MaxInt64), holdfast.MaxHold(math.MaxInt64))
		l := w.lock(t.Context(), m)
		if err := l.Extend(t.Context(), math.MaxInt64); err != nil {
			t.Fatal(err)
		}
		inner := w.lock(l.Context(t.Context()), m)
		w.at(w.now() + time.Hour)
		if err := l.Err(); err != nil {
			t.Error(err)
		}
		w.release(inner)
		w.release(l)
	})
}
