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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

func TestWaitIsTooShort(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held := w.Lock(t.Context(), p.MyLock)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		a := w.GoLock(ctx, q.MyLock)
		w.At(800 * time.Millisecond)
		_, err := a.Result()
		world.Within(t, "gave up at", a.At, 500*time.Millisecond, 550*time.Millisecond)
		world.WantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
		w.WantHolder(held.Owner(), 1)
		w.Release(held)
		w.At(2 * time.Second)
		w.WantFree() // the waiter that left does not get it
	})
}

func TestCancelledWait(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held := w.Lock(t.Context(), p.MyLock)
		ctx, cancel := context.WithCancel(t.Context())
		a := w.GoLock(ctx, q.MyLock)
		w.At(300 * time.Millisecond)
		cancel()
		_, err := a.Result()
		world.WantErr(t, err, holdfast.ErrBusy, context.Canceled)
		world.Within(t, "gave up at", a.At, 300*time.Millisecond, 300*time.Millisecond)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		w.Release(held)
	})
}

func TestCancelledBeforeTheCall(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for _, lock := range []func(context.Context) (*holdfast.Lease, error){p.MyLock.Lock, p.MyLock.TryLock} {
			_, err := lock(ctx)
			world.WantErr(t, err, context.Canceled)
			if errors.Is(err, holdfast.ErrBusy) {
				t.Errorf("%v says that the lock was found held", err)
			}
		}
		if n := p.Runs(""); n != 0 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestWokenByTheMessage(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held := w.Lock(t.Context(), p.MyLock)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := w.GoLock(ctx, q.MyLock)
		w.At(456 * time.Millisecond)
		w.Release(held)
		l, err := a.Result()
		if err != nil {
			t.Fatal(err)
		}
		world.Within(t, "in at", a.At, 456*time.Millisecond, 461*time.Millisecond)
		w.Release(l)
	})
}

// A message that never comes costs no more than the poll bound.
func TestMessageDropped(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held := w.Lock(t.Context(), p.MyLock)
		a := w.GoLock(t.Context(), q.MyLock)
		w.At(456 * time.Millisecond)
		w.Mini.Del(world.Name) // the lock is freed, and no message is sent
		l, err := a.Result()
		if err != nil {
			t.Fatal(err)
		}
		world.Within(t, "in at", a.At, 456*time.Millisecond, 1706*time.Millisecond)
		w.Release(l)
		world.WantErr(t, held.Release(t.Context()), holdfast.ErrLost)
	})
}

// A wait that never got an answer does not claim that the lock was held.
func TestWait_RedisOutOfReach(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		p.Unplug(true)
		for _, lock := range []func(context.Context) (*holdfast.Lease, error){p.MyLock.Lock, p.MyLock.TryLock} {
			began := w.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			_, err := lock(ctx)
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

// Redis is out of reach during a wait and comes back. The wait then goes on.
func TestOutageDuringTheWait(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held := w.Lock(t.Context(), p.MyLock)
		a := w.GoLock(t.Context(), q.MyLock)
		w.At(time.Second)
		q.Unplug(true)
		w.Release(held)
		w.At(20 * time.Second)
		if !a.Pending() {
			t.Fatal("granted without Redis")
		}
		q.Unplug(false)
		l, err := a.Result()
		if err != nil {
			t.Fatal(err)
		}
		world.Within(t, "in at", a.At, 20*time.Second, 21_300*time.Millisecond) // it redials within 1.2 s
		w.Release(l)
	})
}

// The waiters of one process get the lock in the order in which they came.
func TestLocalOrder(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held := w.Lock(t.Context(), p.MyLock)
		var order []int
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				l := w.Lock(t.Context(), q.MyLock)
				order = append(order, i)
				w.Release(l)
			})
			synctest.Wait()
		}
		w.Release(held)
		all.Wait()
		if !slices.IsSorted(order) || len(order) != 10 {
			t.Errorf("order %v", order)
		}
	})
}

func TestNoWaitIsOneTry(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held := w.Lock(t.Context(), p.MyLock)
		_, err := q.MyLock.TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		time.Sleep(5 * time.Second)
		if runs := q.Runs(""); runs != 1 {
			t.Errorf("%d requests", runs)
		}
		if n := q.Net.Count("SUBSCRIBE"); n != 0 {
			t.Errorf("%d subscriptions", n)
		}
		w.Release(held)

		l, err := q.MyLock.TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.Release(l)
	})
}

// Only one waiter of a process talks to Redis, and each release lets one waiter in.
func TestManyWaitersOfOneProcess(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		const waiters = 20
		p, q := w.Process(), w.Process()
		held := w.Lock(t.Context(), p.MyLock)
		var inside atomic.Int32
		var all sync.WaitGroup
		for range waiters {
			all.Go(func() {
				l, err := q.MyLock.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d hold it at once", n)
				}
				time.Sleep(10 * time.Millisecond)
				inside.Add(-1)
				w.Release(l)
			})
		}
		w.At(10 * time.Second)
		if n := q.Runs(""); n > 2*waiters+12 {
			t.Errorf("%d waiters asked %d times in 10 s", waiters, n)
		}
		w.Release(held)
		all.Wait()
		world.Within(t, "all have had it by", w.Now(), 10*time.Second+waiters*10*time.Millisecond, 10*time.Second+waiters*15*time.Millisecond)
	})
}

func TestTheHolderIsGone(t *testing.T) {
	for how, kill := range map[string]func(p *world.Process){
		"cut off": func(p *world.Process) { p.Unplug(true) },
		"silent":  func(p *world.Process) { p.Net.Refuse(true); p.Net.BlackHole() },
		"closed":  func(p *world.Process) { p.Close() },
	} {
		for _, length := range []time.Duration{time.Second, 30 * time.Second} {
			t.Run(fmt.Sprint(how, " ", length), func(t *testing.T) {
				world.Play(t, func(t *testing.T, w *world.World) {
					p, q := w.Process(), w.Process()
					l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Renewed(length)))
					a := w.GoLock(t.Context(), q.MyLock)
					w.At(length / 2) // the lease is renewed at a third of its length
					free := w.Now() + w.PTTL(world.Name)
					kill(p)
					next, err := a.Result()
					if err != nil {
						t.Fatal(err)
					}
					world.Within(t, "in at", a.At, free, free+100*time.Millisecond)
					if l.Err() == nil {
						t.Error("the old lease still lasts")
					}
					w.Release(next)
				})
			})
		}
	}
}

func TestLastWaiterLeaves(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held := w.Lock(t.Context(), p.MyLock)
		ctx, cancel := context.WithCancel(t.Context())
		a := w.GoLock(ctx, q.MyLock)
		b := w.GoLock(ctx, q.MyLock)
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

// A Client that waits for many locks has one connection for subscriptions.
func TestOneSubscriptionConnection(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		const locks = 50
		p, q := w.Process(), w.Process()
		var held []*holdfast.Lease
		var attempts []*world.Attempt
		for i := range locks {
			lock := fmt.Sprint("lock", i)
			held = append(held, w.Lock(t.Context(), p.Mutex(lock)))
			attempts = append(attempts, w.GoLock(t.Context(), q.Mutex(lock)))
		}
		w.At(time.Second)
		if n := len(w.Mini.PubSubChannels("*")); n != 3*locks {
			t.Errorf("%d channels, want %d", n, 3*locks)
		}
		// At most 4 connections for callers, 1 for renewals, and 1 for subscriptions.
		if n := q.Net.Conns(); n > 6 {
			t.Errorf("%d connections", n)
		}
		for i, l := range held {
			w.Release(l)
			if got, err := attempts[i].Result(); err != nil {
				t.Error(err)
			} else {
				w.Release(got)
			}
		}
	})
}

// One wheel serves every lease: the number of goroutines does not grow with the number of leases.
func TestNoGoroutinePerLock(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		held := []*holdfast.Lease{w.Lock(t.Context(), p.MyLock)}
		synctest.Wait()
		before := runtime.NumGoroutine()
		for i := range 200 {
			held = append(held, w.Lock(t.Context(), p.Mutex(fmt.Sprint("lock", i))))
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 10 {
			t.Errorf("%d goroutines more for 200 locks", n)
		}
		w.At(time.Minute) // six renewals each
		for _, l := range held {
			if l.Err() != nil {
				t.Fatal(l.Err())
			}
			w.Release(l)
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
		world.WantErr(t, <-done, context.Canceled, holdfast.ErrBusy)
	}
}
