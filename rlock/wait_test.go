// This file is about how goroutines wait for a lock, and which of them gets it.

package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/rlock"
)

// both are the calls that lock.
func both(m *rlock.Mutex) []func(context.Context) (*holdfast.Lease, error) {
	return []func(context.Context) (*holdfast.Lease, error){m.Lock, m.TryLock}
}

// A wait that never got an answer does not claim that the lock was held.
func TestWait_RedisOutOfReach(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		p.Unplug(true)
		for _, lock := range both(p.MyLock) {
			began := w.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			err := second(lock(ctx))
			cancel()
			world.WantErr(t, err, context.DeadlineExceeded)
			if errors.Is(err, holdfast.ErrBusy) || !strings.Contains(err.Error(), "refused") {
				t.Errorf("%v", err)
			}
			world.Within(t, "gave up after", w.Now()-began, 2*time.Second, 2*time.Second)
		}
		p.Unplug(false)
		w.Release(w.Lock(t.Context(), p.MyLock))
	})
}

// A release is found by its message. Where the message does not come, the next poll finds it, and
// where Redis does not answer either, the wait goes on until it does.
func TestHowAWaiterFindsARelease(t *testing.T) {
	const poll, at = 1250 * time.Millisecond, 3*time.Second + 456*time.Millisecond
	release := func(w *world.World, held *holdfast.Lease, _ *world.Process) { w.Release(held) }
	for how, tc := range map[string]struct {
		free        func(w *world.World, held *holdfast.Lease, waiter *world.Process)
		least, most time.Duration
	}{
		"woken by the message": {release, 0, 5 * time.Millisecond},
		"no message":           {func(w *world.World, _ *holdfast.Lease, _ *world.Process) { w.Mini.Del(world.Name) }, 0, poll},
		"handed over, and no message": {func(w *world.World, _ *holdfast.Lease, _ *world.Process) {
			waiter := w.RDB.ZRange(w.T.Context(), queueKey, 0, 0).Val() // what follows is what a release does
			w.Mini.Del(world.Name)
			w.RDB.HSet(w.T.Context(), world.Name, waiter[0], 0)
			w.RDB.PExpire(w.T.Context(), world.Name, 2*time.Second)
		}, 0, poll},
		"connection closed": {func(w *world.World, held *holdfast.Lease, waiter *world.Process) { waiter.Net.Cut(); w.Release(held) }, 0, poll},
		// The silent connection costs its read timeout of 1 s in addition.
		"silence": {func(w *world.World, held *holdfast.Lease, waiter *world.Process) {
			waiter.Net.BlackHole()
			w.Release(held)
		}, 0, poll + 1100*time.Millisecond},
		"outage": {func(w *world.World, held *holdfast.Lease, waiter *world.Process) {
			waiter.Unplug(true)
			w.Release(held)
			time.AfterFunc(17*time.Second, func() { waiter.Unplug(false) })
		}, 17 * time.Second, 18_300 * time.Millisecond}, // it redials within 1.2 s
	} {
		play(t, how, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			held := w.Lock(t.Context(), p.MyLock)
			a := w.GoLock(t.Context(), q.MyLock)
			w.At(at)
			tc.free(w, held, q)
			l := granted(t, a)
			world.Within(t, "in after", a.At-at, tc.least, tc.most)
			w.WantHolder(l.Owner(), 1)
			w.Release(l)
			_ = held.Release(t.Context())
			q.Net.Cut() // so the server learns that silent connections are dead
		})
	}
}

// A try that finds the lock held is one request that changes nothing, and its error names the lock.
func TestABusyTryIsOneRequestAndChangesNothing(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held := w.Lock(t.Context(), p.MyLock)
		before := w.Mini.Snapshot()
		err := second(q.MyLock.TryLock(t.Context()))
		world.WantErr(t, err, holdfast.ErrBusy)
		if !strings.Contains(err.Error(), `"myLock"`) {
			t.Errorf("%q does not name the key", err)
		}
		if after := w.Mini.Snapshot(); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
		time.Sleep(5 * time.Second)
		if runs, subscribed := q.Runs(""), q.Net.Count("SUBSCRIBE"); runs != 1 || subscribed != 0 {
			t.Errorf("%d requests, %d subscriptions", runs, subscribed)
		}
		w.Release(held)
	})
}

// A waiter parks for the shortest of three times: what is left of the holder's lease, the poll
// bound, and its own wait.
func TestHowLongAWaiterParks(t *testing.T) {
	for _, tc := range []struct {
		what        string
		lease, wait time.Duration
		least, most time.Duration // of the pause before the next try
		gaveUp      bool
	}{
		{"the holder's", 300 * time.Millisecond, 5 * time.Second, 300 * time.Millisecond, 302 * time.Millisecond, false},
		{"the poll bound", 5 * time.Second, 2 * time.Second, 1075 * time.Millisecond, 1250 * time.Millisecond, true},
		{"its own", 5 * time.Second, 200 * time.Millisecond, 200 * time.Millisecond, 200 * time.Millisecond, true},
	} {
		play(t, tc.what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			held := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Fixed(tc.lease)))
			ctx, cancel := context.WithTimeout(t.Context(), tc.wait)
			defer cancel()
			a := w.GoLock(ctx, q.MyLock)
			l, err := a.Result()
			next := a.At
			if i := slices.IndexFunc(q.Times(""), func(at time.Duration) bool { return at > 0 }); i >= 0 {
				next = q.Times("")[i]
			}
			world.Within(t, "parked for", next, tc.least, tc.most)
			if tc.gaveUp {
				world.WantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
				world.Within(t, "gave up at", a.At, tc.wait, tc.wait)
				w.Release(held)
				w.At(w.Now() + 2*time.Second)
				w.WantFree() // the waiter that left does not get it
				return
			}
			must(t, err)
			w.Release(l)
		})
	}
}

// The waiters of one process get the lock one after another, in the order in which they came; but
// others may pass the head, which keeps the process's place in the queue. The head alone talks to Redis.
func TestManyWaitersOfOneProcess(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		const waiters = 20
		p, q := w.Process(), w.Process()
		for _, wait := range []time.Duration{0, 10 * time.Second} {
			held := w.Lock(t.Context(), p.MyLock)
			var order []int
			var all sync.WaitGroup
			inside := 0
			for i := range waiters {
				all.Go(func() {
					l := w.Lock(t.Context(), q.MyLock)
					if inside++; inside != 1 {
						t.Errorf("%d hold it at once", inside)
					}
					order = append(order, i)
					time.Sleep(100 * time.Microsecond)
					inside--
					w.Release(l)
				})
				synctest.Wait()
			}
			before := q.Runs("")
			w.At(w.Now() + wait)
			if n := q.Runs("") - before; n > 12 {
				t.Errorf("%d waiters asked %d times in %v", waiters, n, wait)
			}
			released := w.Now()
			w.Release(held)
			all.Wait()
			world.Within(t, "all have had it after", w.Now()-released, waiters*100*time.Microsecond, 5*time.Millisecond)
			last := -1
			passed := slices.DeleteFunc(slices.Clone(order), func(i int) bool { behind := i > last; last = max(last, i); return behind })
			if len(order) != waiters || len(passed) > 1 {
				t.Errorf("order %v", order)
			}
		}
	})
}

// A lock whose holder is gone is free when its lease is over, and no later.
func TestTheHolderIsGone(t *testing.T) {
	for how, kill := range map[string]func(p *world.Process){
		"cut off": func(p *world.Process) { p.Unplug(true) },
		"silent":  func(p *world.Process) { p.Net.Refuse(true); p.Net.BlackHole() },
		"closed":  func(p *world.Process) { p.Close() },
	} {
		for _, length := range []time.Duration{time.Second, 30 * time.Second} {
			play(t, fmt.Sprint(how, " ", length), func(t *testing.T, w *world.World) {
				p, q := w.Process(), w.Process()
				l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Renewed(length)))
				a := w.GoLock(t.Context(), q.MyLock)
				w.At(length / 2) // the lease is renewed at a third of its length
				free := w.Now() + w.PTTL(world.Name)
				kill(p)
				next := granted(t, a)
				world.Within(t, "in at", a.At, free, free+100*time.Millisecond)
				if l.Err() == nil {
					t.Error("the old lease still lasts")
				}
				w.Release(next)
			})
		}
	}
}

func TestLastWaiterLeaves(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held := w.Lock(t.Context(), p.MyLock)
		ctx, cancel := context.WithCancel(t.Context())
		a, b := w.GoLock(ctx, q.MyLock), w.GoLock(ctx, q.MyLock)
		w.At(time.Second)
		if got := w.Mini.PubSubChannels("*"); len(got) != 3 || !slices.Contains(got, world.Channel) {
			t.Errorf("channels %q, want the lock's, one of all Clients and the waiter's own", got)
		}
		cancel()
		a.Result()
		b.Result()
		w.Release(held)
		w.At(7 * time.Second) // the linger is 5 s
		if got := w.Mini.PubSubChannels("*"); len(got) != 0 {
			t.Errorf("channels %q after the last waiter has left", got)
		}
	})
}

// A Client that waits for many locks has one connection for subscriptions. One wheel renews all
// leases: the number of goroutines does not grow with theirs.
func TestManyLocksOfOneClient(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		const locks = 50
		p, q := w.Process(), w.Process()
		w.Release(w.Lock(t.Context(), p.MyLock))
		synctest.Wait()
		before := runtime.NumGoroutine()
		var held []*holdfast.Lease
		for i := range locks {
			held = append(held, w.Lock(t.Context(), p.Mutex(fmt.Sprint("lock", i))))
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 10 {
			t.Errorf("%d goroutines more for %d locks", n, locks)
		}
		w.At(time.Minute) // six renewals each
		var attempts []*world.Attempt
		for i := range locks {
			attempts = append(attempts, w.GoLock(t.Context(), q.Mutex(fmt.Sprint("lock", i))))
		}
		w.At(w.Now() + time.Second)
		if n := len(w.Mini.PubSubChannels("*")); n != 3*locks {
			t.Errorf("%d channels, want %d", n, 3*locks)
		}
		if n := q.Net.Conns(); n > 6 { // 4 for callers, 1 for renewals, and 1 for subscriptions
			t.Errorf("%d connections", n)
		}
		w.Release(held...)
		for _, a := range attempts {
			w.Release(granted(t, a))
		}
	})
}
