// This file is about how goroutines wait for a lock, and which of them gets it.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

func TestWaitIsTooShort(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		held := w.lock(t.Context(), p.mutex)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		a := w.goLock(ctx, q.mutex)
		w.at(800 * time.Millisecond)
		_, err := a.result()
		within(t, "gave up at", a.at, 500*time.Millisecond, 550*time.Millisecond)
		wantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
		w.wantHolder(held.Owner(), 1)
		w.release(held)
		w.at(2 * time.Second)
		w.wantFree() // the waiter that left does not get it
	})
}

func TestCancelledWait(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		held := w.lock(t.Context(), p.mutex)
		ctx, cancel := context.WithCancel(t.Context())
		a := w.goLock(ctx, q.mutex)
		w.at(300 * time.Millisecond)
		cancel()
		_, err := a.result()
		wantErr(t, err, holdfast.ErrBusy, context.Canceled)
		within(t, "gave up at", a.at, 300*time.Millisecond, 300*time.Millisecond)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		w.release(held)
	})
}

func TestCancelledBeforeTheCall(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, lock := range []func(context.Context) (*holdfast.Lease, error){p.mutex.Lock, p.mutex.TryLock} {
			_, err := lock(ctx)
			wantErr(t, err, context.Canceled)
			if errors.Is(err, holdfast.ErrBusy) {
				t.Errorf("%v says that the lock was found held", err)
			}
		}
		if n := p.runs(""); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestWokenByTheMessage(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		held := w.lock(t.Context(), p.mutex)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := w.goLock(ctx, q.mutex)
		w.at(456 * time.Millisecond)
		w.release(held)
		l, err := a.result()
		if err != nil {
			t.Fatal(err)
		}
		within(t, "in at", a.at, 456*time.Millisecond, 461*time.Millisecond)
		w.release(l)
	})
}

// A message that never comes costs no more than the poll bound.
func TestMessageDropped(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		held := w.lock(t.Context(), p.mutex)
		a := w.goLock(t.Context(), q.mutex)
		w.at(456 * time.Millisecond)
		w.mini.Del(name) // the lock is freed, and no message is sent
		l, err := a.result()
		if err != nil {
			t.Fatal(err)
		}
		within(t, "in at", a.at, 456*time.Millisecond, 1706*time.Millisecond)
		w.release(l)
		wantErr(t, held.Release(t.Context()), holdfast.ErrLost)
	})
}

// A wait that never got an answer does not claim that the lock was held.
func TestWait_RedisOutOfReach(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		p.unplug(true)
		for _, lock := range []func(context.Context) (*holdfast.Lease, error){p.mutex.Lock, p.mutex.TryLock} {
			began := w.now()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			_, err := lock(ctx)
			cancel()
			wantErr(t, err, context.DeadlineExceeded)
			if errors.Is(err, holdfast.ErrBusy) || !strings.Contains(err.Error(), "refused") {
				t.Errorf("%v", err)
			}
			within(t, "gave up after", w.now()-began, 2*time.Second, 2*time.Second)
		}
		p.unplug(false)
		w.release(w.lock(t.Context(), p.mutex))
	})
}

// Redis is out of reach during a wait and comes back. The wait then goes on.
func TestOutageDuringTheWait(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		held := w.lock(t.Context(), p.mutex)
		a := w.goLock(t.Context(), q.mutex)
		w.at(time.Second)
		q.unplug(true)
		w.release(held)
		w.at(20 * time.Second)
		if !a.pending() {
			t.Fatal("granted without Redis")
		}
		q.unplug(false)
		l, err := a.result()
		if err != nil {
			t.Fatal(err)
		}
		within(t, "in at", a.at, 20*time.Second, 20_600*time.Millisecond) // it redials within 0.5 s
		w.release(l)
	})
}

// The waiters of one process get the lock in the order in which they came.
func TestLocalOrder(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		held := w.lock(t.Context(), p.mutex)
		var order []int
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				l := w.lock(t.Context(), q.mutex)
				order = append(order, i)
				w.release(l)
			})
			synctest.Wait()
		}
		w.release(held)
		all.Wait()
		if !slices.IsSorted(order) || len(order) != 10 {
			t.Errorf("order %v", order)
		}
	})
}

func TestNoWaitIsOneTry(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		held := w.lock(t.Context(), p.mutex)
		_, err := q.mutex.TryLock(t.Context())
		wantErr(t, err, holdfast.ErrBusy)
		time.Sleep(5 * time.Second)
		if runs := q.runs(""); runs != 1 {
			t.Errorf("%d requests", runs)
		}
		if n := q.net.Count("SUBSCRIBE"); n != 0 {
			t.Errorf("%d subscriptions", n)
		}
		w.release(held)

		l, err := q.mutex.TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.release(l)
	})
}

// Only one waiter of a process talks to Redis, and each release lets one waiter in.
func TestManyWaitersOfOneProcess(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		const waiters = 20
		p, q := w.process(), w.process()
		held := w.lock(t.Context(), p.mutex)
		var inside atomic.Int32
		var all sync.WaitGroup
		for range waiters {
			all.Go(func() {
				l, err := q.mutex.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold it at once", n)
				}
				time.Sleep(10 * time.Millisecond)
				inside.Add(-1)
				w.release(l)
			})
		}
		w.at(10 * time.Second)
		if n := q.runs(lockRun) + q.runs(enterRun); n > 2*waiters+12 {
			t.Errorf("%d waiters asked %d times in 10 s", waiters, n)
		}
		w.release(held)
		all.Wait()
		within(t, "all have had it by", w.now(), 10*time.Second+waiters*10*time.Millisecond, 10*time.Second+waiters*15*time.Millisecond)
	})
}

func TestTheHolderIsGone(t *testing.T) {
	for how, kill := range map[string]func(p *process){
		"cut off": func(p *process) { p.unplug(true) },
		"silent":  func(p *process) { p.net.Refuse(true); p.net.BlackHole() },
		"closed":  func(p *process) { p.Close() },
	} {
		for _, length := range []time.Duration{time.Second, 30 * time.Second} {
			t.Run(fmt.Sprint(how, " ", length), func(t *testing.T) {
				play(t, func(t *testing.T, w *world) {
					p, q := w.process(), w.process()
					l := w.lock(t.Context(), p.Mutex(name, holdfast.Renewed(length)))
					a := w.goLock(t.Context(), q.mutex)
					w.at(length / 2) // the lease is renewed at a third of its length
					free := w.now() + w.pttl(name)
					kill(p)
					next, err := a.result()
					if err != nil {
						t.Fatal(err)
					}
					within(t, "in at", a.at, free, free+100*time.Millisecond)
					if l.Err() == nil {
						t.Error("the old lease still lasts")
					}
					w.release(next)
				})
			})
		}
	}
}

func TestLastWaiterLeaves(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		held := w.lock(t.Context(), p.mutex)
		ctx, cancel := context.WithCancel(t.Context())
		a := w.goLock(ctx, q.mutex)
		b := w.goLock(ctx, q.mutex)
		w.at(time.Second)
		if got := w.mini.PubSubChannels("*"); len(got) != 3 || !slices.Contains(got, channel) {
			t.Errorf("channels %q, want the lock's, one of all Clients and the waiter's own", got)
		}
		cancel()
		a.result()
		b.result()
		w.release(held)
		w.at(7 * time.Second) // the linger is 5 s
		if got := w.mini.PubSubChannels("*"); len(got) != 0 {
			t.Errorf("channels %q after the last waiter has left", got)
		}
	})
}

// A Client that waits for many locks has one connection for subscriptions.
func TestOneSubscriptionConnection(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		const locks = 50
		p, q := w.process(), w.process()
		var held []*holdfast.Lease
		var attempts []*attempt
		for i := range locks {
			lock := fmt.Sprint("lock", i)
			held = append(held, w.lock(t.Context(), p.Mutex(lock)))
			attempts = append(attempts, w.goLock(t.Context(), q.Mutex(lock)))
		}
		w.at(time.Second)
		if n := len(w.mini.PubSubChannels("*")); n != 3*locks {
			t.Errorf("%d channels, want %d", n, 3*locks)
		}
		// At most 4 connections for callers, 1 for renewals, and 1 for subscriptions.
		if n := q.net.Conns(); n > 6 {
			t.Errorf("%d connections", n)
		}
		for i, l := range held {
			w.release(l)
			if got, err := attempts[i].result(); err != nil {
				t.Error(err)
			} else {
				w.release(got)
			}
		}
	})
}

// One wheel serves every lease: the number of goroutines does not grow with the number of leases.
func TestNoGoroutinePerLock(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		held := []*holdfast.Lease{w.lock(t.Context(), p.mutex)}
		synctest.Wait()
		before := runtime.NumGoroutine()
		for i := range 200 {
			held = append(held, w.lock(t.Context(), p.Mutex(fmt.Sprint("lock", i))))
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 10 {
			t.Errorf("%d goroutines more for 200 locks", n)
		}
		w.at(time.Minute) // six renewals each
		for _, l := range held {
			if l.Err() != nil {
				t.Fatal(l.Err())
			}
			w.release(l)
		}
	})
}

func TestConnectionsOfARealServer(t *testing.T) {
	server := redistest.Server(t)
	holder, waiter := holdfast.New(server.Client(t)), holdfast.New(server.Client(t))
	defer holder.Close()
	defer waiter.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const locks = 10
	done := make(chan error, locks)
	for i := range locks {
		lock := fmt.Sprint("lock", i)
		l, err := holder.Mutex(lock).Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Release(context.Background())
		go func() {
			_, err := waiter.Mutex(lock).Lock(ctx)
			done <- err
		}()
	}
	redistest.Eventually(t, 10*time.Second, "all wait", func() error {
		if n := len(server.Admin().PubSubChannels(ctx, "*").Val()); n != 3*locks {
			return fmt.Errorf("%d channels", n)
		}
		return nil
	})
	list := server.Admin().ClientList(ctx).Val()
	if n := strings.Count(list, "sub="+fmt.Sprint(3*locks)+" "); n != 1 {
		t.Errorf("%d connections with all subscriptions:\n%s", n, list)
	}
	cancel()
	for range locks {
		wantErr(t, <-done, context.Canceled, holdfast.ErrBusy)
	}
}
