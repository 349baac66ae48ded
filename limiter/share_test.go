// A process that takes several units at once serves its calls itself, and gives back what is left.

package limiter_test

import (
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/limiter"
)

func hundred(p *world.Process, more ...limiter.Option) *limiter.Limiter {
	return p.Limiter("api", append([]limiter.Option{limiter.Rate(100, time.Hour)}, more...)...)
}

func TestShare_ACommandForEachK(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p, q *world.Process) {
		a := hundred(p, limiter.Share(16))
		for i := range 48 {
			allow(t, a, 1, true, 99-i)
		}
		world.Equal(t, p.Runs(""), 3, "%d requests for 48 calls, want 3")
		allow(t, hundred(q), 1, true, 51)
	})
}

// Those that wait for a request are served by what it has brought, then by one of their own. Less than a share is kept.
func TestShare_ACrowd(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p, q *world.Process) {
		a := hundred(p, limiter.Share(16))
		p.Each(func(world.Sending) redistest.Fault { return redistest.Delay(100 * time.Millisecond) })
		var all sync.WaitGroup
		for i := range 21 {
			time.Sleep(time.Millisecond)
			all.Go(func() { allow(t, a, 1, true, 99-i) })
		}
		all.Wait()
		p.Each(nil)
		allow(t, hundred(q), 1, true, 100-16-20-1)
		world.Equal(t, p.Runs(""), 2, "%d requests for 21 calls, want 2")
	})
}

// What a request brings for callers that have left meanwhile is given back at once. It is not kept as a share.
func TestShare_ACrowdThatLeaves(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p, q *world.Process) {
		a := hundred(p, limiter.Share(2))
		p.Each(func(world.Sending) redistest.Fault { return redistest.Delay(100 * time.Millisecond) })
		var all sync.WaitGroup
		all.Go(func() { allow(t, a, 2, true, 98) })
		time.Sleep(time.Millisecond)
		for range 60 {
			all.Go(func() {
				world.WantErr(t, redistest.Err(a.Allow(redistest.Within(t, 150*time.Millisecond), 1)), holdfast.ErrUnavailable)
			})
		}
		all.Wait()
		p.Each(nil)
		time.Sleep(200 * time.Millisecond)
		allow(t, hundred(q), 1, true, 97)
	})
}

// A call for more than a share, or than the burst, asks alone: nothing is taken that it cannot have.
func TestShare_BesideACallForMore(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p, q *world.Process) {
		a := hundred(p, limiter.Share(2))
		p.Each(func(world.Sending) redistest.Fault { return redistest.Delay(100 * time.Millisecond) })
		var all sync.WaitGroup
		all.Go(func() { allow(t, a, 2, true, 98) })
		time.Sleep(time.Millisecond)
		all.Go(func() { allow(t, a, 1, true, 97) })
		all.Go(func() { world.WantErr(t, redistest.Err(a.Allow(t.Context(), 1000)), holdfast.ErrBadArgument) })
		all.Wait()
		p.Each(nil)
		allow(t, hundred(q), 1, true, 95)
	})
}

// What is kept counts as free to its process, until the limit is full without it. A call that needs more comes when it was told.
func TestShare_WhatADecisionSays(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p, _ *world.Process) {
		a := ten(p, limiter.Share(5))
		allow(t, a, 1, true, 4)
		d := allow(t, a, 5, false, 4)
		world.Within(t, "retry after", d.RetryAfter, 99*time.Millisecond, 100*time.Millisecond)
		time.Sleep(d.RetryAfter)
		allow(t, a, 5, true, 0)
		time.Sleep(time.Minute)
		allow(t, a, 1, true, 4)
		time.Sleep(900 * time.Millisecond)
		allow(t, a, 1, true, 5)
		time.Sleep(time.Minute)
	})
}

// A call takes of Redis only what it needs beside what is kept.
func TestShare_InPartFromWhatIsKept(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p, q *world.Process) {
		a := hundred(p, limiter.Share(16))
		allow(t, a, 6, true, 94)
		allow(t, hundred(q), 81, true, 3)
		allow(t, a, 12, true, 1)
		time.Sleep(time.Minute)
	})
}

func TestShare_Set(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p, _ *world.Process) {
		a := hundred(p, limiter.Share(5))
		ada := a.For("ada")
		for _, l := range []*limiter.Limiter{a, ada} {
			allow(t, l, 100, true, 0)
			allow(t, l, 1, false, 0)
		}
		set(t, a, 100, time.Hour, 200)
		allow(t, a, 1, true, 99)
		allow(t, ada, 1, true, 99)
	})
}

func TestShare_WhatIsLeftIsGivenBack(t *testing.T) {
	for what, fault := range faults {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, _ *world.World, p, q *world.Process) {
				a, b := hundred(p, limiter.Share(16)), hundred(q)
				p.On(world.LimitGiveBackRun, 1, fault)
				allow(t, a, 3, true, 97)
				allow(t, b, 1, true, 83)
				time.Sleep(5 * time.Second)
				allow(t, b, 1, true, 95)
				allow(t, a, 1, true, 94)
			})
		})
	}
}

func TestShare_ShutdownGivesBackAtOnce(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		allow(t, hundred(p, limiter.Share(16)), 3, true, 97)
		redistest.Check(t, p.Shutdown(t.Context()))
		world.Within(t, "Shutdown", w.Now(), 0, 100*time.Millisecond)
		allow(t, hundred(q), 1, true, 96)
	})
}

// A share that is empty refuses for all that ask until something is there again, and no longer.
func TestShare_RefusedTogether(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p, _ *world.Process) {
		a := ten(p, limiter.Share(5))
		allow(t, a, 5, true, 0)
		p.Forget()
		for range 100 {
			allow(t, a, 1, false, 0)
		}
		world.Equal(t, p.Runs(""), 1, "%d requests, want 1")
		d := allow(t, a, 1, false, 0)
		time.Sleep(d.RetryAfter)
		allow(t, a, 1, true, 0)
		time.Sleep(time.Minute)
	})
}

func TestAcquire_AtTheSameTimeAndInATime(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		a, b := ten(p, limiter.Concurrent(2)), ten(q, limiter.Concurrent(2))
		first, err := a.Acquire(t.Context())
		redistest.Must(t, err)
		held, _, err := acquired(w, b)
		redistest.Must(t, err)
		world.WantErr(t, redistest.Err(a.Locker().TryLock(t.Context())), holdfast.ErrBusy)
		if l, ok := holdfast.LeaseFrom(first.Context(held.Context(t.Context())), b.Locker()); !ok || l == nil {
			t.Error("the context carries no lease")
		}
		w.Release(held)
		allow(t, b, 3, true, 0)
		world.WantErr(t, redistest.Err(a.Locker().TryLock(t.Context())), holdfast.ErrBusy) // by the rate
		l, took, err := acquired(w, a)
		redistest.Must(t, err)
		world.Within(t, "the second", took, 90*time.Millisecond, 110*time.Millisecond)
		// A process that dies gives back when its lease is over.
		p.Close()
		time.Sleep(31 * time.Second)
		one, _, err1 := acquired(w, b)
		two, _, err2 := acquired(w, b)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		w.Release(one, two)
		_, _ = first, l
		w.Mini.FlushAll()
		w.Release(w.Lock(t.Context(), b.Locker()))
	})
}

func acquired(w *world.World, l *limiter.Limiter) (*holdfast.Lease, time.Duration, error) {
	begin := w.Now()
	ctx := redistest.Within(w.T, 10*time.Minute)
	held, err := l.Acquire(ctx)
	return held, w.Now() - begin, err
}

// Redis cannot be reached. Those that wait for the one that asks get the error that it gets, and so go on as the
// options say.
func TestShare_TheOthersFindRedisUnreachableToo(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p, _ *world.Process) {
		shut := hundred(p, limiter.Share(16))
		open := p.Limiter("other", limiter.Rate(100, time.Hour), limiter.Share(16), limiter.OnUnavailable(limiter.Allow))
		p.Unplug(true)
		ctx := redistest.Within(t, time.Second)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				world.WantErr(t, redistest.Err(shut.Allow(ctx, 1)), holdfast.ErrUnavailable)
			})
			all.Go(func() {
				if d, err := open.Allow(ctx, 1); err != nil || !d.Allowed {
					t.Errorf("%+v, %v", d, err)
				}
			})
		}
		all.Wait()
		p.Unplug(false)
	})
}

// When memory is short, nothing can be taken, and what is refused changes nothing.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	server := redistest.Server(t)
	client := clienttest.OpenClient(t, server.Client(t))
	l := client.Limiter("api", limiter.Rate(10, time.Hour))
	redistest.Must(t, server.Admin().ConfigSet(t.Context(), "maxmemory", "1").Err())
	redistest.Is(t, "Allow", redistest.Err(l.Allow(t.Context(), 1)), holdfast.ErrOutOfMemory)
	redistest.Is(t, "Set", l.Set(t.Context(), limiter.Rate(10, time.Hour)), holdfast.ErrOutOfMemory)
}
