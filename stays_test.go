// What stays when work is done or a process ends, AtLeast and Shutdown; and Pause: while a name is paused nothing new begins
// at it, and afterwards everything goes on of its own accord.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/once"
)

// soon is how long after the end of a hold a waiter may be granted it.
const soon = 20 * time.Millisecond

// second is work that takes a second.
func second(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wantGrant fails the test unless locker is granted between least and least+soon.
func wantGrant(t *testing.T, w *world.World, locker lease.Locker, least time.Duration) {
	t.Helper()
	l := w.Lock(t.Context(), locker)
	world.Within(t, "the next grant", w.Now(), least, least+soon)
	w.Release(l)
}

func TestAtLeast(t *testing.T) {
	for what, locker := range more(map[string]func(c *holdfast.Client, name string) holdfast.Locker{
		"stripe": func(c *holdfast.Client, name string) holdfast.Locker { return c.Striped(name, 2).For("key") },
	}) {
		if strings.HasPrefix(what, "rwlock") {
			continue // it cannot stay
		}
		for _, same := range []bool{false, true} {
			play(t, fmt.Sprint(what, ", a waiter of the same process: ", same), func(t *testing.T, w *world.World) {
				p := w.Process()
				q := p
				if !same {
					q = w.Process()
				}
				waits := make(chan *world.Attempt, 1)
				err := holdfast.Do(t.Context(), locker(p.Client, world.Name), func(ctx context.Context) error {
					waits <- w.GoLock(t.Context(), locker(q.Client, world.Name))
					return second(ctx)
				}, holdfast.AtLeast(10*time.Second))
				if err != nil || w.Now() != time.Second {
					t.Errorf("Do: %v, after %v", err, w.Now())
				}
				l := granted(t, (<-waits))
				world.Within(t, "the waiter's grant", w.Now(), 10*time.Second, 10*time.Second+soon)
				w.Release(l)
				w.Mini.Del("holdfast_stripes:" + world.Name)
			})
		}
	}
}

// A hold that its process could pass on, since others of it wait, stays too.
func TestAtLeast_NotPassedOn(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		first := w.GoLock(t.Context(), p.MyLock)
		w.At(time.Second / 2)
		behind := w.GoLock(t.Context(), p.MyLock)
		w.At(time.Second)
		w.Release(l)
		l = granted(t, first)
		must(t, l.AtLeast(t.Context(), 10*time.Second))
		w.Release(l)
		w.Release(granted(t, behind))
		world.Within(t, "the grant after it", w.Now(), 11*time.Second, 11*time.Second+soon)
	})
}

// The lock stays for what is left of the time, without anybody to renew it or wait for it.
func TestAtLeast_NobodyIsNeeded(t *testing.T) {
	for what, then := range map[string]func(p *world.Process){
		"the Client closes":              func(p *world.Process) { p.Close() },
		"the process is off the network": func(p *world.Process) { p.Unplug(true) },
		"nothing more happens":           func(*world.Process) {},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			must(t, holdfast.Do(t.Context(), p.MyLock, second, holdfast.AtLeast(10*time.Second)))
			world.Within(t, "time to live", w.PTTL(world.Name), 9*time.Second, 9*time.Second+soon)
			world.Equal(t, p.Runs(world.RenewRun), 0, "%d requests more, for a time within the lease")
			then(p)
			l, err := q.MyLock.TryLock(t.Context())
			if world.WantErr(t, err, holdfast.ErrBusy); err != nil {
				wantGrant(t, w, q.MyLock, 10*time.Second)
			} else {
				w.Release(l)
			}
			p.Unplug(false)
		})
	}
}

// A fixed lease ends as agreed, and the lock stays for longer, released or not.
func TestAtLeast_Fixed(t *testing.T) {
	for what, release := range map[string]bool{"released": true, "not released": false} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Fixed(2*time.Second)))
			must(t, l.AtLeast(t.Context(), 10*time.Second))
			<-l.Done()
			world.WantErr(t, l.Err(), holdfast.ErrExpired)
			world.Within(t, "the end of the lease", w.Now(), 1900*time.Millisecond, 2*time.Second)
			if release {
				world.WantErr(t, l.Release(t.Context()), holdfast.ErrExpired)
			}
			wantGrant(t, w, q.MyLock, 10*time.Second)
		})
	}
}

// The latest time of all calls on the hold counts, to the microsecond: whatever their order, through
// whichever lease, and whichever is released last.
func TestAtLeast_TheLatestTimeCounts(t *testing.T) {
	const shorter, longer = 3 * time.Second, 10*time.Second + 300*time.Microsecond
	for _, times := range [][]time.Duration{{shorter, longer}, {longer, shorter}} {
		for _, through := range [][]int{{0, 0}, {0, 1}, {1, 0}, {1, 1}} { // the outer lease, or the inner
			for last := range 2 {
				play(t, fmt.Sprint(times, " through ", through, ", last released ", last), func(t *testing.T, w *world.World) {
					p, q := w.Process(), w.Process()
					leases := []*holdfast.Lease{w.Lock(t.Context(), p.MyLock)}
					leases = append(leases, w.Lock(leases[0].Context(t.Context()), p.MyLock))
					for i, d := range times {
						must(t, leases[through[i]].AtLeast(t.Context(), d))
					}
					w.Release(leases[1-last])
					w.At(time.Second)
					w.Release(leases[last])
					wantGrant(t, w, q.MyLock, longer)
				})
			}
		}
	}
}

// Whatever happens meanwhile, the lock stays for its time, and is free soon after that; or after the
// work, if that takes longer.
func TestAtLeast_WhateverHappens(t *testing.T) {
	failed := errors.New("work failed")
	on := func(script string, fault redistest.Fault) func(p *world.Process) {
		return func(p *world.Process) { p.On(script, 1, fault) }
	}
	long := func(d time.Duration) func(*world.Process, context.Context) error {
		return func(*world.Process, context.Context) error { time.Sleep(d); return nil }
	}
	arrive := func(after time.Duration) <-chan struct{} {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		_ = cancel // the timeout ends it
		return ctx.Done()
	}
	for what, tc := range map[string]struct {
		d      time.Duration
		before func(p *world.Process) // nil: nothing
		work   func(p *world.Process, ctx context.Context) error
		err    error
		free   time.Duration // when the lock is free
		later  time.Duration // and how much later that may be found: no message says that a hold now ends sooner
	}{
		"work fails":           {time.Second, nil, func(*world.Process, context.Context) error { return failed }, failed, time.Second, line.PollBound},
		"work takes longer":    {time.Minute, nil, long(5 * time.Minute), nil, 5 * time.Minute, soon},
		"the reply is lost":    {10 * time.Second, on(world.KeepRun, redistest.CloseAfterExec), long(time.Second), nil, 10 * time.Second, time.Second},
		"the request is lost":  {10 * time.Second, on(world.KeepRun, redistest.DropBefore), long(time.Second), nil, 10 * time.Second, time.Second},
		"half a reply":         {10 * time.Second, on(world.KeepRun, redistest.HalfReply), long(time.Second), nil, 10 * time.Second, time.Second},
		"executed twice":       {10 * time.Second, on(world.KeepRun, redistest.Duplicate), long(time.Second), nil, 10 * time.Second, time.Second},
		"a renewal on its way": {15 * time.Second, func(p *world.Process) { p.Each(renewalsUntil(arrive(10_200 * time.Millisecond))) }, long(10_100 * time.Millisecond), nil, 15 * time.Second, soon},
		"a late first request": {2 * time.Second, func(p *world.Process) {
			time.AfterFunc(50*time.Millisecond, p.HangUp)
			p.On(world.LockRun, 1, redistest.HoldUntil(arrive(700*time.Millisecond)))
		}, long(0), nil, 2 * time.Second, 100 * time.Millisecond},
		"an Extend that comes late": {2 * time.Second, nil, func(p *world.Process, ctx context.Context) error {
			l, _ := holdfast.LeaseFrom(ctx, p.MyLock)
			p.On(world.RenewRun, 1, redistest.HoldUntil(arrive(300*time.Millisecond)))
			defer p.HangUp()
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			if err := l.Extend(ctx, time.Hour); err == nil {
				return errors.New("extended")
			}
			return nil
		}, nil, 2 * time.Second, 100 * time.Millisecond},
		"it dies":              {10 * time.Second, nil, outOfReach, holdfast.ErrLost, 30 * time.Second, soon},
		"it dies, kept longer": {2 * time.Minute, nil, outOfReach, holdfast.ErrLost, 2 * time.Minute, soon},
		// What goes on in the background sets the end, later by its own time on the way.
		"the release is not answered": {10 * time.Second, nil, func(p *world.Process, _ context.Context) error {
			p.Unplug(true)
			time.AfterFunc(6*time.Second, func() { p.Unplug(false) })
			return nil
		}, context.DeadlineExceeded, 10 * time.Second, 3 * time.Second},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			w.Release(w.Lock(t.Context(), p.Mutex("another"))) // p knows the server's time
			if tc.before != nil {
				tc.before(p)
			}
			var next *world.Attempt
			var begun time.Duration
			done := w.Try(func() (*holdfast.Lease, error) {
				return nil, holdfast.Do(t.Context(), p.MyLock, func(ctx context.Context) error {
					next, begun = w.GoLock(t.Context(), q.MyLock), w.Now()
					return tc.work(p, ctx)
				}, holdfast.AtLeast(tc.d))
			})
			w.At(100 * time.Millisecond)
			w.Release(granted(t, next))
			world.Within(t, "the next grant", next.At-begun, tc.free, tc.free+tc.later)
			if err := errOf(done.Result()); !errors.Is(err, tc.err) || done.At > next.At {
				t.Errorf("%v at %v, want %v", err, done.At, tc.err)
			}
			p.Unplug(false)
		})
	}
}

// renewalsUntil holds up renewals.
func renewalsUntil(arrive <-chan struct{}) func(world.Sending) redistest.Fault {
	return func(s world.Sending) redistest.Fault {
		if s.Script == world.RenewRun || s.Script == world.ManyRun {
			return redistest.HoldUntil(arrive)
		}
		return redistest.Pass
	}
}

// outOfReach is work under which its process loses Redis for good.
func outOfReach(p *world.Process, ctx context.Context) error {
	p.Unplug(true)
	<-ctx.Done()
	return context.Cause(ctx)
}

// Where it cannot be done, the work does not run, and nothing is held.
func TestAtLeast_Refused(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		never := func(context.Context) error { t.Error("work has run"); return nil }
		for what, err := range map[string]error{
			"negative": holdfast.Do(t.Context(), p.MyLock, never, holdfast.AtLeast(-1)),
			"writer":   holdfast.Do(t.Context(), p.RWMutex("rw"), never, holdfast.AtLeast(time.Second)),
			"reader":   holdfast.Do(t.Context(), p.RWMutex("rw").RLocker(), never, holdfast.AtLeast(time.Second)),
			"multi":    holdfast.Do(t.Context(), holdfast.NewMultiLock(p.MyLock), never, holdfast.AtLeast(time.Second)),
			"quorum":   holdfast.Do(t.Context(), holdfast.NewQuorum("q", []*holdfast.Client{p.Client}), never, holdfast.AtLeast(time.Second)),
			"no lease": (*holdfast.Lease)(nil).AtLeast(t.Context(), time.Second),
		} {
			redistest.Is(t, what, err, holdfast.ErrBadArgument)
		}
		w.WantFree()
		for _, key := range []string{"rw", "q"} {
			if w.Mini.Exists(key) {
				t.Errorf("%s is held", key)
			}
		}
		l := w.Lock(t.Context(), p.MyLock)
		w.Release(l)
		world.WantErr(t, l.AtLeast(t.Context(), time.Second), holdfast.ErrReleased)
		w.Mini.Del("holdfast_quorum")
	})
}

// If Redis cannot be told of a time that is longer than the lease, work does not run.
func TestAtLeast_Unreachable(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		p.Always(world.RenewRun, redistest.DropBefore)
		never := func(context.Context) error { t.Error("work has run"); return nil }
		err := holdfast.Do(redistest.Within(t, 5*time.Second), p.MyLock, never, holdfast.AtLeast(time.Hour))
		world.WantErr(t, err, context.DeadlineExceeded)
		p.Each(nil)
		l := w.Lock(t.Context(), q.MyLock)
		world.Within(t, "the next grant", w.Now(), 5*time.Second, 15*time.Second) // long before the lease ends; dials pause
		w.Release(l)
	})
}

// ForceRelease frees a lock that stays, and a lock that was lost does not stay.
func TestAtLeast_ByForce(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		must(t, holdfast.Do(t.Context(), p.MyLock, second, holdfast.AtLeast(10*time.Second)))
		if found, err := q.MyLock.ForceRelease(t.Context()); !found || err != nil {
			t.Errorf("ForceRelease: %v, %v", found, err)
		}
		wantGrant(t, w, q.MyLock, time.Second)
		err := holdfast.Do(t.Context(), p.MyLock, func(context.Context) error { w.Mini.Del(world.Name); return nil }, holdfast.AtLeast(10*time.Second))
		world.WantErr(t, err, holdfast.ErrLost)
		w.WantFree()
	})
}

// What was detached is whoever's attaches: it has its whole lease until then, and is released at once.
func TestAtLeast_Detached(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		must(t, l.AtLeast(t.Context(), 10*time.Second))
		owner, err := l.Detach(t.Context())
		must(t, err)
		w.WantTTL(30 * time.Second)
		taken, err := q.MyLock.Attach(t.Context(), owner)
		must(t, err)
		w.Release(taken)
		w.WantFree()
	})
}

// shutDown begins a Shutdown, and returns a channel that carries what it returns.
func shutDown(ctx context.Context, p *world.Process) <-chan error {
	done := make(chan error, 1)
	go func() { done <- p.Shutdown(ctx) }()
	synctest.Wait()
	return done
}

// If nothing is left to wait for, Shutdown returns at once, and a context that has ended makes no difference.
func TestShutdown_NothingIsLeft(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		ended, end := context.WithCancel(t.Context())
		end()
		for n := range 20 {
			p, ctx := w.Process(), ended
			if n == 0 {
				ctx = t.Context()
			}
			w.Release(w.Lock(t.Context(), p.MyLock))
			for range 2 {
				must(t, p.Shutdown(ctx))
			}
			world.WantErr(t, errOf(p.MyLock.Lock(t.Context())), holdfast.ErrClosed)
		}
		must(t, holdfast.New(nil).Shutdown(ended)) // of a Client that cannot be used
		world.Within(t, "all", w.Now(), 0, 0)
	})
}

// What is held goes on, renewed, until it is released. What is new is refused, and waits end.
func TestShutdown_WaitsForWhatIsHeld(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		theirs := w.Lock(t.Context(), q.Mutex("theirs"))
		var waits []*world.Attempt
		for range 3 {
			waits = append(waits, w.GoLock(t.Context(), p.MyLock), w.GoLock(t.Context(), p.Mutex("theirs")),
				w.GoLock(t.Context(), p.FairMutex("theirs")), w.GoLock(t.Context(), p.RWMutex("theirs").RLocker()))
		}
		w.At(time.Second) // by now all of them wait, and none is about to ask
		done := shutDown(t.Context(), p)
		for i, wait := range waits {
			if _, err := wait.Result(); !errors.Is(err, holdfast.ErrClosed) || w.Now() != time.Second {
				t.Fatalf("wait %d: %v, after %v", i, err, w.Now())
			}
		}
		for what, f := range map[string]func(context.Context) (*holdfast.Lease, error){
			"Lock": p.Mutex("new").Lock, "TryLock": p.Mutex("new").TryLock, "RLock": p.RWMutex("new").RLock,
			"Attach": func(ctx context.Context) (*holdfast.Lease, error) {
				return p.Mutex("theirs").Attach(ctx, theirs.Owner())
			},
		} {
			_, err := f(t.Context())
			redistest.Is(t, what, err, holdfast.ErrClosed)
		}
		w.At(5 * time.Minute)
		world.WantEnd(t, l.Context(t.Context()), nil)
		if err := l.Extend(t.Context(), time.Minute); err != nil {
			t.Errorf("Extend: %v", err)
		}
		// Work goes on: it re-enters, and locks more.
		inner := w.Lock(l.Context(t.Context()), p.MyLock)
		more := w.Lock(inner.Context(t.Context()), p.Mutex("more"))
		w.Release(l, inner)
		w.WantFree()
		w.At(10 * time.Minute)
		if len(done) > 0 {
			t.Error("it has returned before the last release")
		}
		w.Release(more)
		if err := <-done; err != nil || w.Now() != 10*time.Minute {
			t.Errorf("%v, after %v", err, w.Now())
		}
		if w.Mini.Exists("more") || w.Mini.Exists("new") {
			t.Error("something is left")
		}
		world.WantEnd(t, theirs.Context(t.Context()), nil)
		w.Release(theirs)
	})
}

// If ctx ends first, or Close is called meanwhile, the Client closes all the same, and the lock stays for its lease.
func TestShutdown_EndsEarly(t *testing.T) {
	for what, tc := range map[string]struct {
		ends, closes time.Duration
		err          error
	}{
		"ctx ends": {5 * time.Second, time.Hour, context.DeadlineExceeded},
		"Close":    {time.Hour, 5 * time.Second, nil},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			l := w.Lock(t.Context(), p.MyLock)
			time.AfterFunc(tc.closes, func() { p.Close() })
			if err := p.Shutdown(redistest.Within(t, tc.ends)); !errors.Is(err, tc.err) {
				t.Errorf("Shutdown returned %v, want %v", err, tc.err)
			}
			world.Equal(t, w.Now(), 5*time.Second, "after %v")
			world.WantErr(t, l.Err(), holdfast.ErrClosed)
			w.WantHolder(l.Owner(), 1)
			next := w.Lock(t.Context(), q.MyLock)
			world.Within(t, "the next grant", w.Now(), 29*time.Second, 30*time.Second+soon)
			w.Release(next)
		})
	}
}

// A release that is under way is waited for, for longer than Close would.
func TestShutdown_WaitsForReleases(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.MyLock)
		done := shutDown(t.Context(), p)
		p.Unplug(true)
		released := make(chan error, 1)
		go func() { released <- l.Release(t.Context()) }()
		w.At(3 * time.Second)
		if len(done) > 0 {
			t.Error("it has returned before the release was answered")
		}
		p.Unplug(false)
		must(t, errors.Join(<-released, <-done))
		w.WantFree()
	})
}

// A grant whose answer comes after the beginning of Shutdown is given back.
func TestShutdown_AGrantOnItsWay(t *testing.T) {
	for _, run := range []string{world.LockRun, world.EnterRun} {
		world.Play(t, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			other := w.Lock(t.Context(), p.Mutex("other"))
			answer := make(chan struct{})
			p.On(run, 1, redistest.HoldReply(answer))
			if run == world.EnterRun {
				theirs := w.Lock(t.Context(), q.MyLock)
				time.AfterFunc(time.Second/2, func() { w.Release(theirs) })
			}
			a := w.GoLock(t.Context(), p.MyLock)
			w.At(time.Second)
			done := shutDown(t.Context(), p)
			close(answer)
			if _, err := a.Result(); !errors.Is(err, holdfast.ErrClosed) {
				t.Fatalf("%s: %v", run, err) // with one more to release, Shutdown would not return
			}
			w.Release(other)
			if err := <-done; err != nil {
				t.Errorf("%s: %v", run, err)
			}
			w.WantFree()
		})
	}
}

// Whatever goes on as Shutdown begins, no work is cut off, and nothing of the process is left.
func TestShutdown_InTheMiddle(t *testing.T) {
	for round := range 5 {
		world.Play(t, func(t *testing.T, w *world.World) {
			p, q := w.FarAway(time.Millisecond), w.FarAway(time.Millisecond)
			ctx, cancel := context.WithCancel(t.Context())
			var workers sync.WaitGroup
			for i := range 12 {
				of := []*world.Process{p, q}[i%2]
				name := fmt.Sprint("n", i%3)
				workers.Go(func() {
					for ctx.Err() == nil {
						err := holdfast.Do(ctx, of.Mutex(name), func(ctx context.Context) error {
							time.Sleep(time.Duration(i) * 100 * time.Microsecond)
							return context.Cause(ctx)
						})
						if errors.Is(err, holdfast.ErrClosed) && of == p {
							return
						}
						if err != nil && !errors.Is(err, context.Canceled) {
							t.Errorf("%d: %v", i, err)
						}
					}
				})
			}
			time.Sleep(50*time.Millisecond + time.Duration(round)*173*time.Microsecond)
			if err := p.Shutdown(t.Context()); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			w.At(w.Now() + 20*time.Millisecond)
			cancel()
			workers.Wait()
			q.Close()
			time.Sleep(time.Second) // a dial may be under way
			for i := range 3 {
				if name := fmt.Sprint("n", i); w.Mini.Exists(name) {
					t.Errorf("round %d: %s is held by %v", round, name, w.Holders(name))
				}
			}
		})
	}
}

// paused has pod-1 pause the name for ten minutes.
func paused(t *testing.T, mini *redistest.MiniServer, name string) *holdfast.Client {
	t.Helper()
	c := known(t, mini, "pod-1")
	must(t, c.Pause(t.Context(), name, holdfast.Until(time.Now().Add(10*time.Minute)), holdfast.Because("migration 7")))
	return c
}

// says fails the test unless an error says that the name is paused, by whom and why.
func says(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, holdfast.ErrPaused) || !strings.Contains(err.Error(), `by "pod-1" until`) || !strings.Contains(err.Error(), `"migration 7"`) {
		t.Errorf("%v", err)
	}
}

// This catches a tick that is won while its name is paused, and one that is not won afterwards.
func TestPause_Tick(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		operator, at := paused(t, mini, "report"), time.Now()
		won, err := c.Tick(t.Context(), "report", at, time.Hour)
		if says(t, err); won {
			t.Error("it is won")
		}
		if won, err = c.Tick(t.Context(), "another", at, time.Hour); err != nil || !won {
			t.Errorf("%v, %v", won, err)
		}
		must(t, operator.Resume(t.Context(), "report"))
		must(t, operator.Resume(t.Context(), "report")) // it is not paused
		if won, err = c.Tick(t.Context(), "report", at, time.Hour); err != nil || !won {
			t.Errorf("%v, %v", won, err)
		}
		must(t, operator.Pause(t.Context(), "report", holdfast.Until(time.Now().Add(time.Minute))))
		time.Sleep(61 * time.Second)
		if won, err = c.Tick(t.Context(), "report", at.Add(time.Hour), time.Hour); err != nil || !won {
			t.Errorf("%v, %v", won, err)
		}
	})
}

// This catches a leader that goes on, one that is elected meanwhile, and candidates that do not come back.
func TestPause_Leader(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		var leading, terms atomic.Int64
		ended := make(chan error, 1)
		work := func(ctx context.Context, _ *leader.Term) error {
			leading.Add(1)
			terms.Add(1)
			<-ctx.Done()
			leading.Add(-1)
			select {
			case ended <- context.Cause(ctx):
			default:
			}
			return nil
		}
		for range 3 {
			e := known(t, mini, "pod-2").Leader("scheduler")
			defer background(t, func(ctx context.Context) { _ = e.Run(ctx, work) })()
		}
		time.Sleep(5 * time.Second)
		if leading.Load() != 1 {
			t.Fatalf("%d lead", leading.Load())
		}
		operator := paused(t, mini, "scheduler")
		time.Sleep(2 * time.Second)
		if leading.Load() != 0 {
			t.Error("it goes on")
		}
		if len(ended) == 0 {
			t.Fatal("its context has not ended")
		}
		says(t, <-ended)
		time.Sleep(5 * time.Minute)
		world.Equal(t, terms.Load(), 1, "%d terms")
		must(t, operator.Resume(t.Context(), "scheduler"))
		time.Sleep(3 * time.Second)
		world.Equal(t, leading.Load(), 1, "%d lead")
		must(t, operator.Pause(t.Context(), "scheduler", holdfast.Until(time.Now().Add(time.Minute))))
		time.Sleep(63 * time.Second)
		if leading.Load() != 1 || terms.Load() != 3 {
			t.Errorf("%d lead, in %d terms", leading.Load(), terms.Load())
		}
	})
}

// Work that heeds a pause does not begin during it, and a result that is kept is returned all the same.
func TestPause_OnceAndDo(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		charge := c.Once("x", once.Pausable())
		done := 0
		work := func(context.Context) error { done++; return nil }
		must(t, once.Do(t.Context(), charge, "before", work))
		operator := paused(t, mini, "x")
		must(t, once.Do(t.Context(), charge, "before", work))
		says(t, once.Do(redistest.Within(t, time.Minute), charge, "during", work))
		says(t, once.Do(t.Context(), c.Once("x", once.Pausable(), once.OnBusy(once.Fail)), "during", work))
		says(t, holdfast.Do(t.Context(), c.Mutex("x"), work, holdfast.Pausable(), holdfast.WaitAtMost(time.Minute)))
		says(t, holdfast.Do(t.Context(), c.Mutex("x"), work, holdfast.Pausable(), holdfast.WaitAtMost(0)))
		world.Equal(t, done, 1, "%d times")
		if i := inspected(t, c, "x"); i.Kind != holdfast.KindFree || i.Paused == nil || i.Paused.By != "pod-1" || i.Paused.Because != "migration 7" {
			t.Errorf("%v, %v", i, i.Paused)
		}
		if all := allOf(t, c, "*"); len(all) != 1 || all["x"].Paused == nil {
			t.Errorf("%v", all)
		}
		must(t, holdfast.Do(t.Context(), c.Mutex("x"), work))
		time.AfterFunc(time.Minute, func() { _ = operator.Resume(context.Background(), "x") })
		began := time.Now()
		must(t, holdfast.Do(t.Context(), c.Mutex("x"), work, holdfast.Pausable()))
		must(t, once.Do(t.Context(), charge, "during", work))
		if took := time.Since(began); done != 4 || took < time.Minute || took > 63*time.Second {
			t.Errorf("%d times, after %v", done, took)
		}
		prefixed := clienttest.OpenClient(t, mini.Client(), holdfast.WithKeyPrefix("app:"))
		for _, l := range []holdfast.Locker{c.Slots("y", 1).Locker(), prefixed.Slots("y", 1).Locker()} {
			if err := holdfast.Do(t.Context(), l, work, holdfast.Pausable()); !errors.Is(err, holdfast.ErrBadArgument) || done != 4 {
				t.Errorf("%v", err)
			}
		}
		err := holdfast.Do(t.Context(), holdfast.NewMultiLock(c.Mutex("y")), work, holdfast.Pausable())
		if !errors.Is(err, holdfast.ErrBadArgument) || done != 4 {
			t.Errorf("%v", err)
		}
		if all := allOf(t, c, "*"); len(all) != 0 {
			t.Errorf("%v", all)
		}
	})
}

// Shutdown ends the wait for the end of a pause while it waits for a lease itself.
func TestPause_Shutdown(t *testing.T) {
	onlook(t, func(t *testing.T, mini *redistest.MiniServer, _ *redis.Client, c *holdfast.Client) {
		paused(t, mini, "x")
		held, err := c.Mutex("y").Lock(t.Context())
		must(t, err)
		began := time.Now()
		closed := background(t, func(context.Context) {
			time.Sleep(time.Second)
			must(t, c.Shutdown(context.Background()))
		})
		err = holdfast.Do(t.Context(), c.Mutex("x"), func(context.Context) error { return nil }, holdfast.Pausable())
		if took := time.Since(began); !errors.Is(err, holdfast.ErrClosed) || errors.Is(err, holdfast.ErrPaused) || took > 1100*time.Millisecond {
			t.Errorf("%v, after %v", err, took)
		}
		must(t, held.Release(context.Background()))
		closed()
	})
}

// A Pause whose reply is lost has paused; one that is given up leaves what was there before; and one that makes no sense does
// nothing.
func TestPause_LostAndRefused(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		mini := redistest.Mini(t)
		way := mini.Proxy()
		c := holdfast.New(way.Client(t), holdfast.WithIdentity("pod-2"))
		defer c.Close()
		until := holdfast.Until(time.Now().Add(time.Hour))
		for _, wrong := range []holdfast.PauseOption{nil, holdfast.Until(time.Now()), holdfast.Until(time.Now().Add(31 * 24 * time.Hour))} {
			world.WantErr(t, c.Pause(t.Context(), "x", wrong), holdfast.ErrBadArgument)
		}
		first := redistest.CloseAfterExec
		way.OnCommand(func(cmd redistest.Command) redistest.Fault {
			fault := redistest.Fault(redistest.Pass)
			if strings.HasPrefix(strings.ToLower(cmd.Name), "eval") {
				fault, first = first, redistest.Pass
			}
			return fault
		})
		must(t, c.Pause(t.Context(), "x", until, holdfast.Because("one")))
		looks := known(t, mini, "pod-3")
		if p := inspected(t, looks, "x").Paused; p == nil || p.Because != "one" {
			t.Errorf("%v", p)
		}
		way.OnCommand(func(cmd redistest.Command) redistest.Fault {
			if strings.HasPrefix(strings.ToLower(cmd.Name), "eval") {
				return redistest.Silence
			}
			return redistest.Pass
		})
		short := redistest.Within(t, time.Second)
		world.WantErr(t, c.Pause(short, "x", until, holdfast.Because("two")), context.DeadlineExceeded)
		way.OnCommand(func(redistest.Command) redistest.Fault { return redistest.Pass })
		time.Sleep(10 * time.Second)
		if p := inspected(t, looks, "x").Paused; p == nil || p.Because != "one" {
			t.Errorf("after a Pause that was given up: %v", p)
		}
		must(t, c.Pause(t.Context(), "x", until, holdfast.Because("three")))
		must(t, looks.Resume(t.Context(), "x"))
		if p := inspected(t, looks, "x").Paused; p != nil {
			t.Errorf("%v", p)
		}
		time.Sleep(30 * time.Second)
		if len(mini.Keys()) > 0 {
			t.Errorf("%v", mini.Keys())
		}
	})
}
