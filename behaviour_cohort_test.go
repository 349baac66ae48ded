// This file is about how the mutex is passed on within a process, without a request to Redis.

package holdfast_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// cohort starts n+1 waiters of p, and lets Redis grant the lock to the first waiter. The hold may
// be passed on, and cohort returns its first lease. turns delivers the leases of the other n
// waiters, in the order of the grants.
func (p *process) cohort(n int, options ...holdfast.LeaseOption) (first *holdfast.Lease, turns <-chan *holdfast.Lease) {
	w, m := p.w, p.Mutex(name, options...)
	w.t.Helper()
	w.release(w.lock(w.t.Context(), m)) // a last token: those after it can be reserved
	other := w.process()
	held := w.lock(w.t.Context(), other.mutex)
	all := make(chan *holdfast.Lease)
	for range n + 1 {
		waiter := w.goLock(w.t.Context(), m)
		go func() {
			if l, err := waiter.result(); err == nil {
				all <- l
			}
		}()
		synctest.Wait()
	}
	// One more waiter joins the line, so that the hold has a next waiter when Redis grants it.
	ctx, cancel := context.WithCancel(w.t.Context())
	last := w.goLock(ctx, m)
	w.at(w.now() + 100*time.Millisecond)
	w.release(held)
	first = <-all
	cancel()
	wantErr(w.t, second(last.result()), context.Canceled)
	return first, all
}

// A release passes the lock on to the next waiter of the process. Each waiter gets a lease of its
// own and a greater token. Redis is sent nothing and sees one holder.
func TestCohort_PassesWithoutRedis(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l, turns := p.cohort(5)
		owner, sent := l.Owner(), p.runs("")
		for range 5 {
			ctx := l.Context(t.Context())
			w.release(l)
			next := <-turns
			wantEnd(t, ctx, holdfast.ErrReleased)
			wantErr(t, l.Release(t.Context()), holdfast.ErrReleased)
			if next.Token() <= l.Token() || next.Token() > time.Now().UnixMicro() {
				t.Errorf("token %d after %d, at %d", next.Token(), l.Token(), time.Now().UnixMicro())
			}
			w.wantHolder(owner, 1)
			if next.Err() != nil || next.Owner() != owner {
				t.Errorf("passed on: %v, owner %v of %v", next.Err(), next.Owner(), owner)
			}
			l = next
		}
		if n := p.runs("") - sent; n != 0 {
			t.Errorf("%d requests for 5 grants", n)
		}
		w.release(l)
		w.wantFree()
		if n := w.queued(); n != 0 {
			t.Errorf("%d places are left in the queue", n)
		}
		again := w.lock(t.Context(), p.mutex)
		if again.Token() <= l.Token() {
			t.Errorf("token %d after %d", again.Token(), l.Token())
		}
		w.release(again)
	})
}

// A lease that was passed on can be nested, renewed and lost like any other lease.
func TestCohort_AHoldLikeAnyOther(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l, turns := p.cohort(1)
		w.release(l)
		l = <-turns
		inner := w.lock(l.Context(t.Context()), p.mutex)
		if inner.Token() != l.Token() {
			t.Errorf("token %d within %d", inner.Token(), l.Token())
		}
		w.wantHolder(l.Owner(), 2)
		w.release(inner)
		w.wantHolder(l.Owner(), 1)
		w.at(w.now() + time.Minute)
		if err := l.Err(); err != nil {
			t.Fatalf("not renewed: %v", err)
		}
		w.mini.Del(name)
		w.at(w.now() + 11*time.Second)
		wantErr(t, l.Err(), holdfast.ErrLost)
	})
}

// The lock goes through Redis after it was passed on often enough, or for long enough, so that
// other processes get their turn.
func TestCohort_Bounds(t *testing.T) {
	for _, tc := range []struct {
		what   string
		option holdfast.LeaseOption
		work   time.Duration
		passed int // out of 6 releases
	}{
		{"by default", nil, 0, 6},
		{"three times", holdfast.Cohort(3, time.Hour), 0, 3},
		{"for 10 ms", nil, 3 * time.Millisecond, 3},
		{"for as long as it is told", holdfast.Cohort(64, 100*time.Millisecond), 20 * time.Millisecond, 5},
		{"off", holdfast.Cohort(0, time.Second), 0, 0},
		{"off, by time", holdfast.Cohort(64, 0), 0, 0},
		{"a fixed lease", holdfast.Fixed(time.Minute), 0, 0},
	} {
		t.Run(tc.what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				l, turns := p.cohort(6, tc.option)
				passed := 0
				for range 6 {
					time.Sleep(tc.work)
					owner := l.Owner()
					w.release(l)
					if l = <-turns; l.Owner() == owner {
						passed++
					} else {
						break
					}
				}
				w.release(l)
				if passed != tc.passed {
					t.Errorf("passed on %d times, want %d", passed, tc.passed)
				}
				for range 6 - passed - 1 {
					w.release(<-turns)
				}
				synctest.Wait()
			})
		})
	}
}

// A hold whose renewals do not get through is passed on while at least half of its lease is left,
// and no longer.
func TestCohort_LessThanHalfOfTheLeaseIsLeft(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		arrive := make(chan struct{})
		p.each(func(s sending) redistest.Fault {
			if s.script == renewRun {
				return redistest.HoldUntil(arrive)
			}
			return redistest.Pass
		})
		l, turns := p.cohort(2, holdfast.Cohort(64, time.Hour)) // the lease is 30 s long
		granted := w.now()
		for _, tc := range []struct {
			at     time.Duration
			passed bool
		}{{14 * time.Second, true}, {16 * time.Second, false}} {
			w.at(granted + tc.at)
			owner := l.Owner()
			w.release(l)
			if l = <-turns; (l.Owner() == owner) != tc.passed {
				t.Errorf("passed on after %v: %v, want %v", tc.at, !tc.passed, tc.passed)
			}
		}
		close(arrive)
		w.release(l)
		synctest.Wait()
	})
}

// The lock is not passed on to a waiter with other options: a lease is what its options say.
func TestCohort_OtherOptions(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l, turns := p.cohort(0)
		next := w.goLock(t.Context(), p.Mutex(name, holdfast.Renewed(time.Minute)))
		w.at(w.now() + 5*time.Millisecond)
		w.release(l)
		other, err := next.result()
		if err != nil {
			t.Fatal(err)
		}
		if other.Owner() == l.Owner() {
			t.Error("a hold of 30 s was passed on to one who wants a minute")
		}
		w.at(w.now() + 100*time.Millisecond) // by then the waiter has asked for its whole lease
		if ttl := w.pttl(name); ttl < 59*time.Second {
			t.Errorf("it lasts %v", ttl)
		}
		w.release(other)
		_ = turns
	})
}

// A hold is not passed on while a late request may still make it anew for its owner. Only a release
// in Redis by that owner clears this up.
func TestCohort_NotWithAnUnansweredRequest(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		w.release(w.lock(t.Context(), p.mutex))
		held := w.lock(t.Context(), w.process().mutex)
		first := w.goLock(t.Context(), p.mutex)
		synctest.Wait()
		second := w.goLock(t.Context(), p.mutex)
		w.at(w.now() + 100*time.Millisecond)
		p.on(enterRun, 1, redistest.DropBefore) // p cannot know that the request has not run
		w.release(held)
		l, err := first.result()
		if err != nil {
			t.Fatal(err)
		}
		w.release(l)
		next, err := second.result()
		if err != nil {
			t.Fatal(err)
		}
		if next.Owner() == l.Owner() {
			t.Error("a hold was passed on that a late request may make anew")
		}
		w.release(next)
	})
}

// MaxHold counts from the moment when the lock was passed on.
func TestCohort_MaxHold(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l, turns := p.cohort(1, holdfast.MaxHold(time.Second))
		time.Sleep(5 * time.Millisecond)
		w.release(l)
		l = <-turns
		begun := w.now()
		<-l.Done()
		within(t, "held", w.now()-begun, time.Second, 1100*time.Millisecond)
		wantErr(t, l.Release(t.Context()), holdfast.ErrMaxHold)
	})
}

// A goroutine stands still just as the lock is passed on to it, until its lease is over. It is not
// given that lease: it waits on, and the lock is free for it or for another waiter.
func TestCohort_PassedToOneThatStandsStill(t *testing.T) {
	for _, waiters := range []int{1, 2} { // the head of the line, and the one behind it
		play(t, func(t *testing.T, w *world) {
			meter := &slowMeter{}
			p := w.process(holdfast.WithMeterProvider(meter))
			l, turns := p.cohort(waiters, holdfast.MaxHold(time.Second))
			meter.delay.Store(int64(5 * time.Second))
			begun := w.now()
			w.release(l)
			synctest.Wait() // the goroutine stands still now
			meter.delay.Store(0)
			for range waiters {
				next := <-turns
				if err := next.Err(); err != nil {
					t.Errorf("granted, and over: %v", err)
				}
				w.release(next)
			}
			within(t, "both granted", w.now()-begun, 5*time.Second, 6*time.Second)
		})
	}
}

// slowMeter is a MeterProvider whose counter of wake-ups can be slow. It can hold up a waiter to
// which the lock has just been passed on.
type slowMeter struct {
	metricnoop.MeterProvider
	delay atomic.Int64
}

func (m *slowMeter) Meter(string, ...metric.MeterOption) metric.Meter { return slowCounts{m: m} }

type slowCounts struct {
	metricnoop.Meter
	m *slowMeter
}

func (c slowCounts) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	if name == "holdfast.wakeups" {
		return slowCounter{m: c.m}, nil
	}
	return metricnoop.Int64Counter{}, nil
}

type slowCounter struct {
	metricnoop.Int64Counter
	m *slowMeter
}

func (c slowCounter) Add(context.Context, int64, ...metric.AddOption) {
	time.Sleep(time.Duration(c.m.delay.Load()))
}

// A hold that was lost is not passed on, and a waiter of the process goes on waiting for the lock
// itself.
func TestCohort_ForcedOpen(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		l, turns := p.cohort(2)
		if _, err := q.mutex.ForceRelease(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := <-turns // the lock was handed to the process' place, as by any release
		if second.Owner() == l.Owner() || second.Token() <= l.Token() {
			t.Errorf("owner %v, token %d, after %v, %d", second.Owner(), second.Token(), l.Owner(), l.Token())
		}
		w.at(w.now() + 11*time.Second)
		wantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		w.release(second)
		third := <-turns
		if third.Token() <= second.Token() {
			t.Errorf("token %d after %d", third.Token(), second.Token())
		}
		w.release(third)
	})
}

// A process that is closed in the middle of a cohort leaves nothing behind but its hold.
func TestCohort_Closed(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		l, _ := p.cohort(2)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		wantErr(t, l.Err(), holdfast.ErrClosed)
		w.at(w.now() + time.Second)
		if n := w.queued(); n != 0 {
			t.Errorf("%d places are left in the queue", n)
		}
		w.at(w.now() + 31*time.Second)
		w.wantFree()
	})
}

// A process makes more than a million grants a second, and then Redis loses its data. No token was
// ahead of the server's clock, so the next token is greater.
func TestInterleaving_ManyLocalGrantsThenDataLoss(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, last := w.process(), int64(0)
		for range 20 {
			l, turns := p.cohort(100, holdfast.Cohort(1000, time.Second))
			for i := range 100 { // no time passes
				if l.Token() <= last || l.Token() > time.Now().UnixMicro() {
					t.Fatalf("grant %d: token %d after %d, at %d", i, l.Token(), last, time.Now().UnixMicro())
				}
				last = l.Token()
				w.release(l)
				l = <-turns
			}
			last = l.Token()
			w.mini.FlushAll()
			next := w.lock(t.Context(), w.process().mutex)
			if next.Token() <= last {
				t.Fatalf("token %d after %d and the loss of all data", next.Token(), last)
			}
			last = next.Token()
			w.release(next)
			w.at(w.now() + 11*time.Second)
			wantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		}
	})
}

// The lock is passed on while the request of a cancelled waiter is on its way. That request then
// does nothing to the holder, and leaves no place behind.
func TestInterleaving_PassedOnWhileACancelledRequestIsUnanswered(t *testing.T) {
	for _, late := range []time.Duration{0, 500 * time.Millisecond, 5 * time.Second} {
		play(t, func(t *testing.T, w *world) {
			p, option := w.process(), holdfast.Cohort(64, time.Minute)
			l, _ := p.cohort(0, option)
			ctx, cancel := context.WithCancel(t.Context())
			head := w.goLock(ctx, p.Mutex(name, option))
			synctest.Wait()
			follower := w.goLock(t.Context(), p.Mutex(name, option))
			w.at(w.now() + 10*time.Millisecond)
			arrive, asked := make(chan struct{}), p.runs(enterRun)
			p.on(enterRun, 1, redistest.HoldUntil(arrive))
			for p.runs(enterRun) == asked {
				time.Sleep(10 * time.Millisecond) // the head polls
			}
			cancel()
			wantErr(t, second(head.result()), context.Canceled)
			synctest.Wait()
			w.release(l)
			next, err := follower.result()
			if err != nil || next.Owner() != l.Owner() {
				t.Fatalf("not passed on: %v", err)
			}
			w.at(w.now() + late)
			close(arrive)
			w.at(w.now() + 3*time.Second)
			w.wantHolder(l.Owner(), 1)
			w.release(next)
			if n := w.queued(); n != 0 {
				t.Errorf("%d places are left in the queue", n)
			}
			w.wantFree()
		})
	}
}

// Several processes pass one lock on in cohorts, and their waiters may give up at any moment. There
// is one holder at a time, tokens grow, and nothing is left behind.
func TestReal_CohortsWithCancels(t *testing.T) {
	server := redistest.Server(t)
	const processes, goroutines = 4, 12
	grants := redistest.CountOfWork(t, 200_000)
	var inside, token int64
	var done sync.WaitGroup
	var mu sync.Mutex
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	shares, clients := make([]int, processes), make([]*holdfast.Client, processes)
	for i := range processes {
		client := openClient(t, server.Client(t))
		clients[i] = client
		m := client.Mutex(name, holdfast.Cohort(8, time.Millisecond))
		for k := range goroutines {
			done.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					wait, cancel := context.WithTimeout(ctx, time.Duration(1+(n*7+k*13)%40)*time.Millisecond)
					l, err := m.Lock(wait)
					cancel()
					if err != nil {
						continue
					}
					mu.Lock()
					inside++
					if inside != 1 {
						t.Errorf("%d inside", inside)
					}
					if l.Token() <= token {
						t.Errorf("token %d after %d", l.Token(), token)
					}
					token = l.Token()
					shares[i]++
					grants--
					if grants == 0 {
						stop()
					}
					inside--
					mu.Unlock()
					if err := l.Release(t.Context()); err != nil {
						t.Errorf("release: %v", err)
					}
				}
			})
		}
	}
	done.Wait()
	t.Logf("grants of each process: %v", shares)
	if least := slices.Min(shares); least == 0 {
		t.Errorf("a process was starved: %v", shares)
	}
	for _, client := range clients {
		client.Close()
	}
	redistest.LeftBehind(t, server.Client(t), allTokens)
}
