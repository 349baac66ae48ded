// Set changes the rate for all: calls, keys, and those that wait, in their order.

package limiter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/limiter"
)

func set(t *testing.T, l *limiter.Limiter, n int, d time.Duration, burst int) {
	t.Helper()
	redistest.Check(t, l.Set(t.Context(), limiter.Rate(n, d), limiter.Burst(burst)))
}

func TestSet_CountsAtOnceAndForAll(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		a, b := ten(p), ten(q)
		allow(t, a, 5, true, 0)
		set(t, b, 100, time.Second, 8)
		d := allow(t, a, 1, true, 2)
		if d.Rate != 100 || d.Burst != 8 || d.Per != time.Second {
			t.Errorf("%+v", d)
		}
		world.WantErr(t, func() error { _, err := a.Allow(t.Context(), 9); return err }(), holdfast.ErrBadArgument)
		for _, p := range w.Processes {
			p.Close() // a Client that is open makes months long
		}
		for _, tc := range []struct{ days, burst int }{{29, 8}, {29, 8}, {31, 5}} { // from the last call on
			time.Sleep(time.Duration(tc.days) * 24 * time.Hour)
			p := w.Process()
			allow(t, ten(p), tc.burst, true, 0)
			p.Close()
		}
	})
}

func TestSet_KeysHeedItSoon(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		a, b := ten(p), ten(q)
		allow(t, a.For("k"), 1, true, 4)
		allow(t, b.For("k"), 1, true, 3)
		set(t, a, 1, time.Minute, 3)
		allow(t, a.For("k"), 1, true, 0)
		allow(t, b.For("k"), 1, false, 0) // the key knows it
		allow(t, b.For("new"), 1, true, 4)
		time.Sleep(1300 * time.Millisecond)
		allow(t, b.For("new"), 1, true, 2) // of three, and none is owed
		allow(t, ten(w.Process()).For("fresh"), 1, true, 2)
		p.Forget()
		for range 100 {
			redistest.Check(t, redistest.Err(a.For("k").Allow(t.Context(), 1)))
		}
		if n := p.Runs(""); n > 101 {
			t.Errorf("%d requests for 100 calls", n)
		}
	})
}

func TestSet_OfOneKey(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p, q *world.Process) {
		set(t, ten(p).For("big"), 1000, time.Second, 100)
		time.Sleep(2 * time.Second)
		b := ten(q)
		allow(t, b.For("big"), 60, true, 40)
		allow(t, b.For("small"), 1, true, 4)
		set(t, b, 10, time.Hour, 10) // the last Set counts
		time.Sleep(2 * time.Second)
		allow(t, b.For("big"), 1, true, 9)
	})
}

// Those that wait go on in their order, by the new rate: at once when the message comes, and soon without it.
func TestSet_MovesThoseThatWait(t *testing.T) {
	for _, mute := range []bool{false, true} {
		for _, key := range []string{"", "k"} {
			play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
				of := func(p *world.Process) *limiter.Limiter {
					l := p.Limiter("api", limiter.Rate(1, time.Second), limiter.Burst(1))
					if key != "" {
						l = l.For(key)
					}
					return l
				}
				a, b := of(p), of(q)
				allow(t, a, 1, true, 0)
				begin := w.Now()
				var all []*waiting
				for i := range 40 {
					all = append(all, wait(t.Context(), w, []*limiter.Limiter{a, b}[i%2], 1))
				}
				if mute {
					p.Mute()
					q.Mute()
				}
				time.Sleep(begin + 10500*time.Millisecond - w.Now())
				set(t, w.Processes[0].Limiter("api", limiter.Rate(1, time.Second)), 10, time.Second, 1)
				for _, a := range all {
					<-a.done
				}
				p.Unmute()
				q.Unmute()
				for i, a := range all {
					redistest.Check(t, a.err)
					if !mute && i > 0 && a.at < all[i-1].at {
						t.Errorf("waiter %d goes at %v, waiter %d at %v", i, a.at, i-1, all[i-1].at)
					}
				}
				late := 14700 * time.Millisecond
				if mute && key != "" { // the key learns of it by the first that looks
					late = 17 * time.Second
				}
				world.Within(t, "the last goes", all[39].at-begin, 14500*time.Millisecond, late)
			})
		}
	}
}

func TestSet_Slower(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		l := ten(p)
		drained(t, l)
		begin := w.Now()
		for range 49 {
			wait(t.Context(), w, l, 1)
		}
		last := wait(t.Context(), w, ten(q), 1) // after 5 s
		at := w.Now()
		set(t, ten(q), 1, time.Second, 5)
		near := 1250 * time.Millisecond // which those that come soon still have
		last.wantAt(t, at+near+10*(begin+5*time.Second-at-near))
	})
}

// A Set whose caller has gone comes late: what was set meanwhile stays.
func TestSet_LateChangesNothing(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p, q *world.Process) {
		a, b := ten(p), ten(q)
		allow(t, a, 1, true, 4)
		p.On(world.LimitSetRun, 1, redistest.Delay(900*time.Millisecond))
		err := a.Set(redistest.Within(t, 100*time.Millisecond), limiter.Rate(1, time.Second))
		world.WantErr(t, err, holdfast.ErrUnknown)
		set(t, b, 100, time.Second, 50)
		time.Sleep(2 * time.Second)
		allow(t, b, 1, true, 49)
		allow(t, a.For("k"), 1, true, 49)
	})
}

// A Set for a key counts though another process has just brought the rate of an earlier Set to that key.
func TestSet_KeyAfterTheLimiter(t *testing.T) {
	play(t, func(t *testing.T, _ *world.World, p, q *world.Process) {
		a, b := ten(p), ten(q)
		allow(t, a.For("k"), 1, true, 4)
		set(t, b, 100, time.Second, 50)
		time.Sleep(100 * time.Millisecond)
		p.On(world.LimitSetRun, 1, redistest.Delay(300*time.Millisecond))
		go func() {
			time.Sleep(100 * time.Millisecond)
			allow(t, b.For("k"), 50, true, 0)
		}()
		set(t, a.For("k"), 1, time.Minute, 1)
		time.Sleep(2 * time.Second)
		for _, l := range []*limiter.Limiter{a, b} {
			if d := allow(t, l.For("k"), 1, false, 0); d.Per != time.Minute {
				t.Errorf("%+v", d)
			}
		}
	})
}

// A failover has forgotten the last Set: keys go on by the one before, in the process that knew of the last one too.
func TestSet_Forgotten(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		a := ten(p)
		set(t, a, 20, time.Second, 20)
		before := w.RDB.Get(t.Context(), limitKey).Val()
		time.Sleep(time.Second)
		set(t, a, 100, time.Second, 100)
		w.RDB.Set(t.Context(), limitKey, before, time.Hour)
		time.Sleep(2 * time.Second)
		allow(t, a.For("k"), 1, true, 19)
		w.Mini.FlushAll()
		time.Sleep(2 * time.Second)
		allow(t, a.For("k"), 1, true, 4)
	})
}

// A rate of almost nothing stops all, however much was taken, and the next Set lets all go on in turn.
func TestSet_ToAlmostNothing(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		l := p.Limiter("api", limiter.Rate(1000, time.Second))
		allow(t, l, 1000, true, 0)
		first, second := wait(t.Context(), w, l, 1000), wait(t.Context(), w, l, 1000) // in 1 s, and in 2 s
		last := wait(t.Context(), w, l, 1000)
		set(t, l, 1, 366*24*time.Hour, 1)
		d := allow(t, l, 1, false, 0)
		if year := 366 * 24 * time.Hour; d.RetryAfter < 284*year || d.ResetAfter < 284*year {
			t.Errorf("%+v", d)
		}
		<-first.done // it was near, and keeps its time
		time.Sleep(10 * time.Second)
		begin := w.Now()
		set(t, q.Limiter("api", limiter.Rate(1, time.Second)), 1000, time.Second, 1000)
		for i, a := range []*waiting{first, second, last} {
			<-a.done
			redistest.Check(t, a.err)
			if i > 0 { // the time that is near does not change: once more for each Set
				world.Within(t, "the turn", a.at-begin, time.Duration(i+1)*time.Second-10*time.Millisecond, time.Duration(i+1)*time.Second)
			}
		}
	})
}

// No debt is rounded to a number that is written with an exponent.
func TestSet_DebtThatIsRoundedUp(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, _ *world.Process) {
		state := fmt.Sprintf("%d 99999999999999.75 7 1000000 1000000 5 0", time.Now().UnixMicro())
		redistest.Check(t, w.RDB.Set(t.Context(), limitKey, state, time.Hour).Err())
		set(t, ten(p), 1_000_000, time.Second, 5)
		allow(t, ten(p), 1, false, 0)
	})
}

// Redis that has lost its data, or whose clock was set: a burst more, or one wait, at most.
func TestWhenRedisForgets(t *testing.T) {
	play(t, func(t *testing.T, w *world.World, p, q *world.Process) {
		l := ten(p)
		drained(t, l)
		a := wait(t.Context(), w, l, 1)
		long := wait(t.Context(), w, l, 5)
		at := w.Now()
		w.Mini.FlushAll()
		allow(t, ten(q), 5, true, 0)
		allow(t, ten(q), 1, false, 0)
		a.wantAt(t, at+tenth-2*time.Millisecond)
		long.wantAt(t, at+6*tenth-2*time.Millisecond)
	})
}
