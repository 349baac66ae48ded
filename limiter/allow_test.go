// Allow counts for all processes together, by the server's clock, and each call once.

package limiter_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/limiter"
)

func TestAllow_AllProcessesTogether(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		a, b := ten(p), ten(q)
		allow(t, a, 2, true, 3)
		allow(t, b, 3, true, 0)
		d := allow(t, a, 2, false, 0)
		want := limiter.Decision{RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter, Rate: 10, Per: time.Second, Burst: 5}
		world.Equal(t, d, want, "%+v, want %+v", want)
		world.Within(t, "retry after", d.RetryAfter, 199*time.Millisecond, 200*time.Millisecond)
		world.Within(t, "reset after", d.ResetAfter, 499*time.Millisecond, 500*time.Millisecond)
		time.Sleep(d.RetryAfter)
		allow(t, b, 2, true, 0)
		time.Sleep(time.Hour)
		if w.Mini.Exists(limitKey) {
			t.Error("a limit that is full stands in Redis")
		}
		allow(t, a, 1, true, 4)
	})
}

// However the calls fall, no time has more units than burst and rate allow, and none are lost.
func TestAllow_NeverMoreThanBurstAndRate(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		limits := []*limiter.Limiter{ten(p), ten(q)}
		var times []time.Duration
		for i := range 4000 {
			time.Sleep(time.Duration(i*i%37) * time.Millisecond)
			if d, err := limits[i%2].Allow(t.Context(), 1); err != nil {
				t.Fatal(err)
			} else if d.Allowed {
				times = append(times, w.Now())
			}
		}
		for i := range times {
			for j := i + 5; j < len(times); j += 5 {
				if n, most := j-i+1, 5+(times[j]-times[i]).Seconds()*10+0.01; float64(n) > most {
					t.Fatalf("%d units from %v to %v", n, times[i], times[j])
				}
			}
		}
		if least := w.Now().Seconds()*10 - 5; float64(len(times)) < least {
			t.Errorf("%d units in %v", len(times), w.Now())
		}
	})
}

// A call that fails takes nothing, whether its request comes late or not at all.
func TestAllow_WhatFailsTakesNothing(t *testing.T) {
	for _, off := range []bool{true, false} {
		play(t, func(t *testing.T, _ *world.World, p, q *world.Process) {
			a, b := p.Limiter("api", limiter.Rate(10, time.Hour)), q.Limiter("api", limiter.Rate(10, time.Hour))
			allow(t, a, 1, true, 9)
			p.Always(world.LimitTakeRun, redistest.CloseAfterExec)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			if off {
				time.AfterFunc(100*time.Millisecond, cancel)
			}
			world.WantErr(t, redistest.Err(a.Allow(ctx, 1)), ctx.Err())
			p.Each(nil)
			time.Sleep(5 * time.Second)
			allow(t, b, 1, true, 8)
		})
	}
}

func TestAllow_RedisOutOfReach(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		shut, open := ten(p), ten(p, limiter.OnUnavailable(limiter.Allow))
		allow(t, shut, 1, true, 4)
		p.Unplug(true)
		world.WantErr(t, redistest.Err(shut.Allow(t.Context(), 1)), holdfast.ErrUnavailable)
		world.Within(t, "Allow", w.Now(), 3*time.Second, 4*time.Second)
		began, all := w.Now(), sync.WaitGroup{}
		for range 5 { // some wait for a request of the others
			all.Go(func() { world.WantErr(t, redistest.Err(shut.Allow(t.Context(), 1)), holdfast.ErrUnavailable) })
		}
		all.Wait()
		world.Within(t, "five at once", w.Now()-began, 3*time.Second, 4*time.Second)
		if d, err := open.Allow(t.Context(), 1); err != nil || !d.Allowed {
			t.Errorf("Allow: %+v, %v", d, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		world.WantErr(t, shut.Wait(ctx, 1), holdfast.ErrUnavailable, context.DeadlineExceeded)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		redistest.Check(t, open.Wait(ctx, 1))
		if r, err := open.Reserve(t.Context(), 1); err != nil || r.Delay() != 0 || r.Cancel(t.Context()) != nil {
			t.Errorf("Reserve: %v", err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if _, err := open.Allow(ctx, 1); err == nil {
			t.Error("a cancelled call was allowed")
		}
		p.Unplug(false)
	})
}

func TestArgumentsRefused(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		day := 24 * time.Hour
		for what, l := range map[string]*limiter.Limiter{
			"no rate":           p.Limiter("api"),
			"a rate of 0":       p.Limiter("api", limiter.Rate(0, time.Second)),
			"a negative rate":   p.Limiter("api", limiter.Rate(-1, time.Second)),
			"no time":           p.Limiter("api", limiter.Rate(1, 0)),
			"too short a time":  p.Limiter("api", limiter.Rate(1, time.Microsecond-1)),
			"too long a time":   p.Limiter("api", limiter.Rate(1, 367*day)),
			"too high a rate":   p.Limiter("api", limiter.Rate(1001, time.Millisecond)),
			"overflow":          p.Limiter("api", limiter.Rate(math.MaxInt, time.Duration(math.MaxInt64))),
			"a burst of 0":      ten(p, limiter.Burst(0)),
			"too great":         ten(p, limiter.Burst(math.MaxInt)),
			"a share of 0":      ten(p, limiter.Share(0)),
			"too great a share": ten(p, limiter.Share(6)),
			"nobody at a time":  ten(p, limiter.Concurrent(0)),
			"unavailable":       ten(p, limiter.OnUnavailable(2)),
			"no name":           p.Limiter("", limiter.Rate(1, time.Second)),
			"a reserved name":   p.Limiter("holdfast_x", limiter.Rate(1, time.Second)),
			"no key":            ten(p).For(""),
		} {
			_, err := l.Allow(t.Context(), 1)
			for _, err := range []error{err, l.Wait(t.Context(), 1), l.Set(t.Context(), limiter.Rate(1, time.Second))} {
				if world.WantErr(t, err, holdfast.ErrBadArgument); t.Failed() {
					t.Fatal(what)
				}
			}
		}
		world.Equal(t, p.Runs(""), 0, "%d requests")
		for _, n := range []int{0, -1, math.MinInt, math.MaxInt, 6} {
			_, err := ten(p).Allow(t.Context(), n)
			world.WantErr(t, err, holdfast.ErrBadArgument)
			world.WantErr(t, ten(p).Wait(t.Context(), n), holdfast.ErrBadArgument)
			world.WantErr(t, redistest.Err(ten(p).Reserve(t.Context(), n)), holdfast.ErrBadArgument)
		}
		world.WantErr(t, ten(p).Set(t.Context(), limiter.Rate(1, time.Second), limiter.Share(1)), holdfast.ErrBadArgument)
		world.WantErr(t, ten(p).Set(t.Context()), holdfast.ErrBadArgument)
		world.WantErr(t, redistest.Err(ten(p).Acquire(t.Context())), holdfast.ErrBadArgument)
		if w.Mini.Exists(limitKey) {
			t.Error("something was taken")
		}
	})
}

func TestFor_EachKeyHasALimitOfItsOwn(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		a, b := ten(p), ten(q)
		allow(t, a.For("ada"), 5, true, 0)
		allow(t, b.For("ada"), 1, false, 0)
		allow(t, b.For("bob"), 5, true, 0)
		allow(t, a, 5, true, 0)
		allow(t, a.For("a:b"), 5, true, 0)
		allow(t, a.For("a%3Ab"), 5, true, 0)
		allow(t, p.Limiter("api:bob", limiter.Rate(10, time.Second), limiter.Burst(5)), 1, false, 0)
		world.Equal(t, a.For("a:b").Name(), "api:a:b", "the name is %q")
		time.Sleep(time.Minute)
		if keys := w.Mini.Keys(); len(keys) != 0 {
			t.Errorf("left: %q", keys)
		}
	})
}

// Calls that come while two requests of their process are under way ask together, and the first of them get what is there.
// One leaves while it is asked for: what is taken for it goes to the next, or back.
func TestAllow_CallsThatWaitAskTogether(t *testing.T) {
	for there, left := range map[int]int{40: 0, 60: 10} {
		play(t, func(t *testing.T, _ *world.World, p, q *world.Process) {
			a, b := p.Limiter("api", limiter.Rate(there, time.Hour)), q.Limiter("api", limiter.Rate(there, time.Hour))
			p.Each(func(world.Sending) redistest.Fault { return redistest.Delay(100 * time.Millisecond) })
			var all sync.WaitGroup
			for i := range 50 {
				time.Sleep(time.Millisecond)
				all.Go(func() {
					ctx := t.Context()
					if i == 10 {
						ctx = redistest.Within(t, 150*time.Millisecond)
					}
					d, err := a.Allow(ctx, 1)
					if (err != nil) != (i == 10) || err == nil && d.Allowed != (i <= there) {
						t.Errorf("call %d of 50: %+v, %v", i, d, err)
					}
				})
			}
			all.Wait()
			world.Equal(t, p.Runs(world.LimitTakeRun), 3, "%d requests for 50 calls, want 3")
			p.Each(nil)
			time.Sleep(time.Second)
			allow(t, b, 1, left > 0, left)
		})
	}
}

// Calls for two units do not ask together. Those that queue for one server go out together, and each has its own answer, by the
// rate in force.
func TestAllow_ManyAtOnce(t *testing.T) {
	for _, change := range []bool{false, true} {
		play(t, func(t *testing.T, _ *world.World, p, q *world.Process) {
			l := p.Limiter("api", limiter.Rate(100, time.Hour))
			if change {
				set(t, q.Limiter("api", limiter.Rate(1, time.Second)), 100, time.Hour, 100)
				l = p.Limiter("api", limiter.Rate(1, time.Minute), limiter.Burst(7))
			}
			var all sync.WaitGroup
			var mu sync.Mutex
			remaining, refused := map[int]int{}, 0
			for range 300 {
				all.Go(func() {
					d, err := l.Allow(t.Context(), 2)
					mu.Lock()
					defer mu.Unlock()
					if remaining[d.Remaining]++; !d.Allowed {
						remaining[d.Remaining]--
						refused++
					}
					if err != nil || d.Rate != 100 || d.Per != time.Hour || d.Burst != 100 || d.Allowed != (d.RetryAfter == 0) {
						t.Errorf("%+v, %v", d, err)
					}
				})
			}
			all.Wait()
			for n := 0; n < 100; n += 2 {
				world.Equal(t, remaining[n], 1, "%d calls found that %d remain", n)
			}
			// How many go out together depends on the scheduler.
			if runs := p.Runs(world.LimitTakeRun); refused != 250 || runs > 290 {
				t.Errorf("%d refused, want 250; %d requests one by one", refused, runs)
			}
		})
	}
}
