// This file is about how the mutex is passed on within a process, without a request to Redis.

package rlock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// cohort starts n+1 waiters of p, and lets Redis grant the lock to the first waiter. The hold may be passed on, and
// cohort returns its first lease. turns delivers the leases of the other n waiters, in the order of the grants.
func cohort(p *world.Process, n int, options ...holdfast.LeaseOption) (first *holdfast.Lease, turns <-chan *holdfast.Lease) {
	w, m := p.W, p.Mutex(world.Name, options...)
	w.T.Helper()
	w.Release(w.Lock(w.T.Context(), m)) // a last token: those after it can be reserved
	other := w.Process()
	held := w.Lock(w.T.Context(), other.MyLock)
	all := make(chan *holdfast.Lease)
	for range n + 1 {
		waiter := w.GoLock(w.T.Context(), m)
		go func() {
			if l, err := waiter.Result(); err == nil {
				all <- l
			}
		}()
		synctest.Wait()
	}
	// One more waiter joins the line, so that the hold has a next waiter when Redis grants it.
	ctx, cancel := context.WithCancel(w.T.Context())
	last := w.GoLock(ctx, m)
	w.At(w.Now() + 100*time.Millisecond)
	w.Release(held)
	first = <-all
	cancel()
	world.WantErr(w.T, second(last.Result()), context.Canceled)
	return first, all
}

// A release passes the lock on to the next waiter of the process. Each waiter gets a lease of its
// own and a greater token. Redis is sent nothing and sees one holder.
func TestCohort_PassesWithoutRedis(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l, turns := cohort(p, 5)
		owner, sent := l.Owner(), p.Runs("")
		for range 5 {
			ctx := l.Context(t.Context())
			w.Release(l)
			next := <-turns
			world.WantEnd(t, ctx, holdfast.ErrReleased)
			world.WantErr(t, l.Release(t.Context()), holdfast.ErrReleased)
			if next.Token() <= l.Token() || next.Token() > time.Now().UnixMicro() {
				t.Errorf("token %d after %d, at %d", next.Token(), l.Token(), time.Now().UnixMicro())
			}
			w.WantHolder(owner, 1)
			if next.Err() != nil || next.Owner() != owner {
				t.Errorf("passed on: %v, owner %v of %v", next.Err(), next.Owner(), owner)
			}
			l = next
		}
		world.Equal(t, p.Runs("")-sent, 0, "%d requests for 5 grants")
		w.Release(l)
		w.WantFree()
		wantQueued(w, 0)
		again := w.Lock(t.Context(), p.MyLock)
		if again.Token() <= l.Token() {
			t.Errorf("token %d after %d", again.Token(), l.Token())
		}
		w.Release(again)
	})
}

// passOn releases l, and returns the next lease, and whether it is on the same hold.
func passOn(w *world.World, l *holdfast.Lease, turns <-chan *holdfast.Lease) (next *holdfast.Lease, passed bool) {
	w.T.Helper()
	w.Release(l)
	next = <-turns
	if next.Token() <= l.Token() {
		w.T.Errorf("token %d after %d", next.Token(), l.Token())
	}
	return next, next.Owner() == l.Owner()
}

// A lease that was passed on can be nested, is renewed, and ends like any other lease. Its MaxHold
// counts from the moment when it was passed on.
func TestCohort_AHoldLikeAnyOther(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l, turns := cohort(p, 1, holdfast.MaxHold(2*time.Minute), holdfast.Cohort(64, time.Hour))
		time.Sleep(time.Second)
		l, _ = passOn(w, l, turns)
		begun := w.Now()
		inner := w.Lock(l.Context(t.Context()), p.MyLock)
		w.WantHolder(l.Owner(), 2)
		w.Release(inner)
		w.WantHolder(l.Owner(), 1)
		<-l.Done()
		world.Within(t, "held", w.Now()-begun, 2*time.Minute-5*time.Millisecond, 2*time.Minute+100*time.Millisecond)
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrMaxHold)
	})
}

// The lock goes through Redis after it was passed on often enough, or for long enough, so that
// other processes get their turn. A process that shares it keeps to its options too.
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
		{"for a lease shorter than a place in the queue lasts", holdfast.Renewed(time.Second), 0, 6},
		{"with a grace", holdfast.Grace(10 * time.Second), 0, 6},
		{"a fixed lease", holdfast.Fixed(time.Minute), 0, 0},
	} {
		for _, shares := range []bool{false, true} {
			play(t, fmt.Sprint(tc.what, ", shares: ", shares), func(t *testing.T, w *world.World) {
				p := w.Process()
				if shares {
					w.Crowd(p, w.Process())
				}
				l, turns := cohort(p, 6, tc.option)
				count, taken := 0, 0
				for passed := true; passed && taken < 6; taken++ {
					time.Sleep(tc.work)
					if l, passed = passOn(w, l, turns); passed {
						count++
					}
				}
				w.Release(l)
				world.Equal(t, count, tc.passed, "passed on %d times, want %d", tc.passed)
				for range 6 - taken {
					w.Release(<-turns)
				}
				synctest.Wait()
			})
		}
	}
}

// rivals are processes with unequal numbers of goroutines, all of which want the lock all the time.
type rivals []struct {
	p          *world.Process
	goroutines int
}

// newRivals starts a process for each number of goroutines.
func newRivals(w *world.World, goroutines ...int) rivals {
	all := make(rivals, len(goroutines))
	for i, n := range goroutines {
		all[i].p, all[i].goroutines = w.FarAway(200*time.Microsecond), n
	}
	return all
}

// contend has them lock and release for that long, and returns how many grants each process has had.
func (r rivals) contend(w *world.World, d time.Duration) []int {
	ctx, stop := context.WithTimeout(w.T.Context(), d)
	defer stop()
	granted := make([]int, len(r))
	var all sync.WaitGroup
	for i, rival := range r {
		for range rival.goroutines {
			all.Go(func() {
				for ctx.Err() == nil {
					l, err := rival.p.MyLock.Lock(ctx)
					if err != nil {
						return
					}
					granted[i]++ // only the holder is here
					time.Sleep(5 * time.Microsecond)
					w.Release(l)
				}
			})
		}
	}
	all.Wait()
	time.Sleep(10 * time.Millisecond) // until connections that were being made are there
	return granted
}

// A process passes the lock on eight times for each of its goroutines while other processes want it
// too. So a goroutine that is alone in its process has its share.
func TestCohort_SharesOfUnequalProcesses(t *testing.T) {
	for _, counts := range [][]int{{2, 1}, {2, 2, 1, 1, 1}, {20, 5, 1, 1}} {
		world.Play(t, func(t *testing.T, w *world.World) {
			all := newRivals(w, counts...)
			all.contend(w, 20*time.Millisecond) // until each has found out that there are others
			granted := all.contend(w, 50*time.Millisecond)
			alone := granted[len(granted)-1]
			for i, n := range granted {
				t.Logf("%d goroutines: %d grants", counts[i], n)
				if each := n / counts[i]; each > 25*alone {
					t.Errorf("of %v, %d grants each in one process, %d in another", counts, each, alone)
				}
			}
		})
	}
}

// A process that has the lock alone passes it on as often as it may, however few its goroutines are,
// and does so again soon after others have left.
func TestCohort_AProcessAloneHasNoShare(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		both := newRivals(w, 2, 1)
		alone := both[:1].contend(w, 60*time.Millisecond)[0]
		both.contend(w, 20*time.Millisecond)
		again := both[:1].contend(w, 60*time.Millisecond)[0]
		t.Logf("%d grants, and %d after another process has left", alone, again)
		// With a share it would have some 2 000. A goroutine that comes late, to an empty line, costs some.
		if alone < 6_000 || again < alone*8/10 {
			t.Errorf("alone it had %d grants, and %d after another process has left", alone, again)
		}
	})
}

// A hold whose renewals do not get through is passed on while at least half of its lease is left, and no longer.
func TestCohort_LessThanHalfOfTheLeaseIsLeft(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		arrive := make(chan struct{})
		p.Always(world.RenewRun, redistest.HoldUntil(arrive))
		l, turns := cohort(p, 2, holdfast.Cohort(64, time.Hour)) // the lease is 30 s long
		granted := w.Now()
		for _, tc := range []struct {
			at     time.Duration
			passed bool
		}{{14 * time.Second, true}, {16 * time.Second, false}} {
			w.At(granted + tc.at)
			var passed bool
			if l, passed = passOn(w, l, turns); passed != tc.passed {
				t.Errorf("passed on after %v: %v, want %v", tc.at, !tc.passed, tc.passed)
			}
		}
		close(arrive)
		w.Release(l)
		synctest.Wait()
	})
}

// Nor is a hold passed on that Redis may keep for longer than a lease, whether this process knows for how long or not: if
// the next holder dies, others would wait for as long.
func TestCohort_NotALongerHold(t *testing.T) {
	const soon = 50 * time.Millisecond
	for what, prolong := range map[string]func(t *testing.T, w *world.World, p *world.Process, l *holdfast.Lease){
		"an Extend": func(t *testing.T, _ *world.World, _ *world.Process, l *holdfast.Lease) {
			must(t, l.Extend(t.Context(), time.Hour))
		},
		"an Extend under way": func(t *testing.T, _ *world.World, p *world.Process, l *holdfast.Lease) {
			p.On(world.RenewRun, 1, redistest.DelayReply(10*soon))
			go l.Extend(t.Context(), time.Hour)
			time.Sleep(soon)
		},
		"an Extend that was given up": func(t *testing.T, _ *world.World, p *world.Process, l *holdfast.Lease) {
			p.On(world.RenewRun, 1, redistest.DelayReply(10*soon))
			world.WantErr(t, l.Extend(redistest.Within(t, soon), time.Hour), context.DeadlineExceeded)
		},
		"an Extend that is answered after its nested lease": func(t *testing.T, w *world.World, p *world.Process, l *holdfast.Lease) {
			inner := w.Lock(l.Context(t.Context()), p.MyLock)
			p.On(world.RenewRun, 1, redistest.DelayReply(soon))
			go inner.Extend(t.Context(), time.Hour)
			synctest.Wait()
			w.Release(inner)
			time.Sleep(2 * soon)
		},
		"a longer nested lease": func(t *testing.T, w *world.World, p *world.Process, l *holdfast.Lease) {
			w.Release(w.Lock(l.Context(t.Context()), p.Mutex(world.Name, holdfast.Fixed(time.Hour))))
		},
		"a longer nested lease that was given up": func(t *testing.T, _ *world.World, p *world.Process, l *holdfast.Lease) {
			p.On(world.RecountRun, 1, redistest.DelayReply(10*soon))
			_, err := p.Mutex(world.Name, holdfast.Fixed(time.Hour)).Lock(l.Context(redistest.Within(t, soon)))
			world.WantErr(t, err, context.DeadlineExceeded)
			time.Sleep(20 * soon) // the count was set right
		},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p := w.Process()
			l, turns := cohort(p, 1, holdfast.Cohort(64, time.Hour))
			prolong(t, w, p, l)
			next, passed := passOn(w, l, turns)
			if left := w.PTTL(world.Name); passed || left > 30*time.Second {
				t.Errorf("passed on: %v, to last for %v", passed, left)
			}
			w.At(w.Now() + time.Second)
			w.Release(next)
		})
	}
}

// A hold is not passed on while a late request may still make it anew for its owner. Only a release
// in Redis by that owner clears this up.
func TestCohort_NotWithAnUnansweredRequest(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		held, first, behind := twoBehind(w, p, p.MyLock)
		p.On(world.EnterRun, 1, redistest.DropBefore) // p cannot know that the request has not run
		w.Release(held)
		l := granted(t, first)
		synctest.Wait() // the one behind it is the head of the line now
		w.Release(l)
		next := granted(t, behind)
		if next.Owner() == l.Owner() {
			t.Error("a hold was passed on that a late request may make anew")
		}
		w.Release(next)
	})
}

// A goroutine stands still just as the lock is passed on to it, until its lease is over. It is not
// given that lease: it waits on, and the lock is free for it or for another waiter.
func TestCohort_PassedToOneThatStandsStill(t *testing.T) {
	for _, waiters := range []int{1, 2} { // the head of the line, and the one behind it
		world.Play(t, func(t *testing.T, w *world.World) {
			var delay atomic.Int64 // of the counter of wake-ups: it can hold up a waiter to which the lock has just been passed on
			p := w.Process(holdfast.WithMeterProvider(&world.Meters{Counted: func(counter string, _ int64) {
				if counter == "holdfast.wakeups" {
					time.Sleep(time.Duration(delay.Load()))
				}
			}}))
			l, turns := cohort(p, waiters, holdfast.MaxHold(time.Second))
			delay.Store(int64(5 * time.Second))
			begun := w.Now()
			w.Release(l)
			synctest.Wait() // the goroutine stands still now
			delay.Store(0)
			for range waiters {
				next := <-turns
				must(t, next.Err())
				w.Release(next)
			}
			world.Within(t, "both granted", w.Now()-begun, 5*time.Second, 6*time.Second)
		})
	}
}

// Nor is a hold passed on whose last lease was on other options: its renewal goes by that lease.
func TestCohort_NotAfterALeaseOnOtherOptions(t *testing.T) {
	for what, tc := range map[string]struct {
		first, last holdfast.LeaseOption
		after       time.Duration
	}{
		"fixed":           {holdfast.Renewed(3 * time.Second), holdfast.Fixed(8 * time.Second), 5500 * time.Millisecond},
		"without a grace": {holdfast.Grace(25 * time.Second), nil, 2 * time.Second},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p := w.Process()
			l, turns := cohort(p, 1, tc.first, holdfast.Cohort(64, time.Hour))
			inner := w.Lock(l.Context(t.Context()), p.Mutex(world.Name, tc.last))
			w.Release(l)
			w.At(w.Now() + tc.after)
			w.Release(inner)
			next := <-turns
			w.At(w.Now() + 5*time.Minute)
			must(t, next.Err())
			w.Release(next)
		})
	}
}

// Close comes between the end of a lease and the hold being passed on: nobody has it, and it is given up.
func TestCohort_CloseComesBetween(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l, _ := cohort(p, 0)
		l.Context(&parting{t.Context(), make(chan struct{}), func() {
			go p.Close()
			time.Sleep(time.Millisecond)
		}})
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrClosed)
		w.At(w.Now() + time.Second)
		w.WantFree()
	})
}

// parting is a user's context that calls part when a context below it ends.
type parting struct {
	context.Context
	done chan struct{}
	part func()
}

func (p *parting) Done() <-chan struct{} { return p.done }

func (p *parting) AfterFunc(func()) func() bool {
	return func() bool {
		p.part()
		return true
	}
}

// Shutdown begins while a lock that was just granted is counted. It is passed on to work that Shutdown waits for, and
// stays that work's: it is not given up as well.
func TestCohort_ShutdownComesBetween(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		var begins atomic.Pointer[func()]
		p := w.Process(holdfast.WithMeterProvider(&world.Meters{Counted: func(counter string, n int64) {
			if begin := begins.Load(); counter == "holdfast.lock.active" && n > 0 && begin != nil {
				begins.Store(nil)
				(*begin)()
			}
		}}))
		w.Release(w.Lock(t.Context(), p.MyLock)) // a last token: those after it can be reserved
		work := w.Lock(t.Context(), p.Mutex("other"))
		held := w.Lock(t.Context(), w.Process().MyLock)
		head := w.GoLock(t.Context(), p.MyLock)
		synctest.Wait()
		behind := w.GoLock(work.Context(t.Context()), p.MyLock)
		w.At(w.Now() + 100*time.Millisecond)
		over := make(chan error, 1)
		begins.Store(new(func() {
			go func() { over <- p.Shutdown(t.Context()) }()
			time.Sleep(time.Millisecond)
		}))
		w.Release(held)
		world.WantErr(t, second(head.Result()), holdfast.ErrClosed)
		l := granted(t, behind)
		w.At(w.Now() + time.Second)
		w.WantHolder(l.Owner(), 1)
		w.Release(l, work)
		must(t, <-over)
	})
}

// The lock is passed on to a waiter that was alone in line, and its process keeps its place in the queue. A forced
// release hands the lock to that place, which nobody needs: the Release that finds its hold gone gives it up.
func TestCohort_ForcedOpenForAPlaceThatNobodyNeeds(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		l, turns := cohort(w.Process(), 1)
		last, passed := passOn(w, l, turns)
		if !passed {
			t.Error("not passed on")
		}
		_, err := w.Process().MyLock.ForceRelease(t.Context())
		must(t, err)
		world.WantErr(t, last.Release(t.Context()), holdfast.ErrLost)
		synctest.Wait()
		w.WantFree()
		wantQueued(w, 0)
	})
}

// Who was handed the lock by a message holds it like any other: beside it a waiter sends one request for each poll.
func TestPollsBesideAHoldThatWasHandedOver(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q, r := w.Process(), w.Process(), w.Process()
		l, other := w.Lock(t.Context(), p.MyLock), w.Lock(t.Context(), p.Mutex("other"))
		next, too := w.GoLock(t.Context(), q.MyLock), w.GoLock(t.Context(), q.Mutex("other"))
		w.At(time.Second)
		last := w.GoLock(t.Context(), r.MyLock) // behind it
		w.At(2 * time.Second)
		w.Release(l, other) // two at once, so that one request makes both whole
		l = granted(t, next)
		w.At(15 * time.Second) // by now it was renewed
		r.Forget()
		w.At(75 * time.Second)
		if n := r.Runs(""); n < 40 || n > 55 {
			t.Errorf("%d requests in a minute", n)
		}
		w.Release(l, granted(t, too))
		w.Release(granted(t, last))
	})
}
