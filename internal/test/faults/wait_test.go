// A lock that is waited for becomes free, and the waiter has it, whether or not it hears of that. What ends the wait of all
// ends it for all at once. A context ends at each moment of a call, which returns then, and leaves nothing behind.

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

const (
	// heard is how soon a waiter has the lock that hears of the release.
	heard = 10 * time.Millisecond
	// polled is how soon it has the lock if it hears nothing.
	polled = 1250*time.Millisecond + heard
)

func TestWaitersGetTheLock(t *testing.T) {
	for _, tc := range []struct {
		name   string
		bound  time.Duration
		deaf   func(w *world.World, waiter *world.Process) // before it waits
		before func(w *world.World, waiter *world.Process) // just before the release
		free   func(w *world.World, l *holdfast.Lease, holder *world.Process) error
	}{
		{name: "by the message", bound: heard},
		{name: "though messages are dropped", bound: polled,
			before: func(w *world.World, _ *world.Process) { w.Mini.DropMessages(true) }},
		{name: "though it loses its connections", bound: polled,
			before: func(_ *world.World, waiter *world.Process) { waiter.HangUp() }},
		{name: "though its subscription falls silent", bound: polled,
			before: func(_ *world.World, waiter *world.Process) { waiter.Mute() }},
		{name: "though its subscription is never confirmed", bound: polled,
			deaf: func(_ *world.World, waiter *world.Process) {
				waiter.Net.OnCommand(func(c redistest.Command) redistest.Fault {
					if c.Name == "SUBSCRIBE" {
						return redistest.Silence
					}
					return waiter.Observe(c)
				})
			}},
		{name: "after the data was lost", bound: polled,
			free: func(w *world.World, l *holdfast.Lease, _ *world.Process) error {
				w.RDB.FlushDB(w.T.Context())
				<-l.Done()
				return wants(l.Release(w.T.Context()), holdfast.ErrLost)
			}},
		{name: "after the end of a holder that is cut off", bound: 30*time.Second + polled,
			free: func(w *world.World, l *holdfast.Lease, holder *world.Process) error {
				holder.Unplug(true)
				<-l.Done()
				return wants(l.Err(), holdfast.ErrLost)
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eachKind(t, func(w *world.World, kind lockertest.Kind) {
				if tc.name == "after the data was lost" && kind.Prepare != nil {
					return // nobody is granted permits that are not set
				}
				for _, after := range []time.Duration{20 * time.Millisecond, 800 * time.Millisecond, 2 * time.Second} {
					waiter, holder := w.Process(), w.Process()
					if tc.deaf != nil {
						tc.deaf(w, waiter)
					}
					mine, theirs := contenders(w.T, kind, "myLock", waiter.Client, holder.Client)
					l := w.Lock(w.T.Context(), theirs)
					a := w.GoLock(w.T.Context(), mine)
					time.Sleep(after)
					if tc.before != nil {
						tc.before(w, waiter)
					}
					began := w.Now()
					var err error
					if tc.free != nil {
						err = tc.free(w, l, holder)
					} else {
						err = l.Release(w.T.Context())
					}
					got, lockErr := a.Result()
					redistest.Must(w.T, errors.Join(err, lockErr))
					world.Within(w.T, "the grant", a.At-began, 0, tc.bound)
					w.Mini.DropMessages(false)
					waiter.Unmute()
					w.Release(got)
					waiter.Close()
					holder.Close()
				}
			})
		})
	}
}

// wants returns an error unless err matches target.
func wants(err, target error) error {
	if errors.Is(err, target) {
		return nil
	}
	return errors.New("want " + target.Error())
}

// The locks work even if the program uses up the pool of the client that it gave to the Client.
func TestUsersPoolExhausted(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		server := redistest.Mini(t)
		rdb := server.Client(func(o *redis.Options) { o.PoolSize, o.MaxRetries = 1, -1 })
		blocked := make(chan error)
		go func() { blocked <- rdb.BLPop(context.Background(), 0, "nothing comes here").Err() }()
		time.Sleep(time.Second)
		if stats := rdb.PoolStats(); stats.TotalConns != 1 || stats.IdleConns != 0 {
			t.Fatalf("%+v", stats)
		}
		c := clienttest.OpenClient(t, rdb)
		leases := clienttest.GrabMany(t, c, "pool", 20)
		time.Sleep(100 * time.Second) // leases of 30 s
		for name, l := range leases {
			clienttest.StillHeld(t, server.Client(), name, l)
		}
		clienttest.GiveBackAll(t, leases)
		_ = rdb.Close() // not before: BLPOP does not look at its context
		<-blocked
	})
}

// manyWait is how many wait for bad news.
const manyWait = 500

// badNews leaves all waiters of a process nothing to wait for.
var badNews = map[string]struct {
	prepare, wait, tell func(ctx context.Context, c *holdfast.Client) error
	want                error // of each wait
}{
	"a barrier is reset": {
		prepare: func(context.Context, *holdfast.Client) error { return nil },
		wait: func(ctx context.Context, c *holdfast.Client) error {
			return second(c.Barrier("b", manyWait+1).Await(ctx))
		},
		tell: func(ctx context.Context, c *holdfast.Client) error {
			return second(c.Barrier("b", manyWait+1).Reset(ctx))
		},
		want: holdfast.ErrBroken,
	},
	"a latch is deleted": {
		prepare: func(ctx context.Context, c *holdfast.Client) error { return second(c.Latch("l").TrySetCount(ctx, 1)) },
		wait:    func(ctx context.Context, c *holdfast.Client) error { return c.Latch("l").Wait(ctx) },
		tell:    func(ctx context.Context, c *holdfast.Client) error { return second(c.Latch("l").Delete(ctx)) },
		want:    holdfast.ErrDeleted,
	},
	"permits are made fewer": {
		prepare: func(ctx context.Context, c *holdfast.Client) error {
			p := c.PermitSemaphore("p")
			if _, err := p.TrySetPermits(ctx, 3); err != nil {
				return err
			}
			return second(p.Acquire(ctx, 1))
		},
		wait: func(ctx context.Context, c *holdfast.Client) error {
			return second(c.PermitSemaphore("p").Acquire(ctx, 3))
		},
		tell: func(ctx context.Context, c *holdfast.Client) error { return c.PermitSemaphore("p").AddPermits(ctx, -1) },
		want: holdfast.ErrNoPermits,
	},
}

// Many wait in one process, 20 ms away from Redis. What leaves them nothing to wait for is found by one of
// them, and all know at once.
func TestBadNewsIsForAll(t *testing.T) {
	const away = 20 * time.Millisecond
	for what, news := range badNews {
		t.Run(what, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				other, p := w.Process(), w.FarAway(away)
				redistest.Must(t, news.prepare(t.Context(), other.Client))
				told := make(chan time.Duration, manyWait)
				for range manyWait {
					go func() {
						if err := news.wait(t.Context(), p.Client); !errors.Is(err, news.want) {
							t.Errorf("error %v, want %v", err, news.want)
						}
						told <- w.Now()
					}()
				}
				w.At(10 * time.Second)
				before := p.Net.Count("EVALSHA")
				redistest.Must(t, news.tell(t.Context(), other.Client))
				var all []time.Duration
				for range manyWait {
					all = append(all, <-told)
				}
				// One is notified, and the others hear from it what it finds.
				last, scripts := slices.Max(all)-10*time.Second, p.Net.Count("EVALSHA")-before
				t.Logf("all know after %v and %d scripts", last, scripts)
				if last > 5*away || scripts > 5 {
					t.Errorf("all know after %v and %d scripts", last, scripts)
				}
				time.Sleep(20 * time.Second)
				synctest.Wait()
				w.RDB.FlushDB(t.Context())
			})
		})
	}
}

// second returns the error of a call with two results.
func second[T any](_ T, err error) error { return err }

// eachKind plays a scene with each kind of lock, each in a world of its own.
func eachKind(t *testing.T, scene func(w *world.World, kind lockertest.Kind)) {
	for _, kind := range lockertest.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				scene(w, kind)
				for _, p := range w.Processes {
					p.Close()
				}
				if kind.Prepare == nil { // what was prepared stays
					redistest.LeftBehind(t, w.RDB, staying...)
				}
				w.RDB.FlushDB(t.Context())
			})
		})
	}
}

// contenders returns p's lock of that name, and q's, which it excludes.
func contenders(t *testing.T, kind lockertest.Kind, name string, p, q *holdfast.Client) (mine, theirs holdfast.Locker) {
	t.Helper()
	if kind.Prepare != nil {
		redistest.Must(t, kind.Prepare(t.Context(), q, name))
	}
	rival := kind.Locker
	if kind.Rival != nil {
		rival = kind.Rival
	}
	return kind.Locker(p, name), rival(q, name)
}

// turn locks and releases.
func turn(ctx context.Context, m holdfast.Locker) error {
	l, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	return l.Release(ctx)
}

// The process is new, and 20 ms away from its server: it dials, is granted a lock that is free, or waits for
// one until it is released.
func TestCancelledAtEachMoment(t *testing.T) {
	eachKind(t, func(w *world.World, kind lockertest.Kind) {
		rival := w.Process()
		for _, released := range []time.Duration{0, 200 * time.Millisecond} {
			for d, granted := time.Millisecond, false; !granted; d += 7 * time.Millisecond {
				p := w.FarAway(20 * time.Millisecond)
				mine, theirs := contenders(w.T, kind, fmt.Sprint(released, d), p.Client, rival.Client)
				if released > 0 {
					l := w.Lock(w.T.Context(), theirs)
					time.AfterFunc(released, func() { w.Release(l) })
				}
				granted = cancelled(w, mine, d)
				time.Sleep(2 * time.Second) // what an abandoned call took is given back by then
				next, err := theirs.TryLock(w.T.Context())
				if err != nil {
					w.T.Fatalf("a Lock that was cancelled after %v left the lock held: %v", d, err)
				}
				w.Release(next)
				p.Close()
			}
		}
	})
}

// cancelled locks with a context that ends after d, and says whether that is granted before.
func cancelled(w *world.World, m holdfast.Locker, d time.Duration) bool {
	ctx := redistest.Within(w.T, d)
	began := w.Now()
	l, err := m.Lock(ctx)
	if err == nil {
		w.Release(l)
		return true
	}
	world.WantErr(w.T, err, context.DeadlineExceeded)
	world.Within(w.T, "a Lock that is cancelled", w.Now()-began, d, d)
	return false
}

// The server takes connections as it should not, or none, or does not answer.
func TestCancelledWithoutAnAnswer(t *testing.T) {
	for what, break_ := range map[string]func(*redistest.FaultProxy){
		"mute":       func(p *redistest.FaultProxy) { p.Receive(redistest.Mute) },
		"slam":       func(p *redistest.FaultProxy) { p.Receive(redistest.Slam) },
		"change":     func(p *redistest.FaultProxy) { p.Receive(redistest.Change) },
		"full":       func(p *redistest.FaultProxy) { p.Receive(redistest.Full) },
		"refused":    func(p *redistest.FaultProxy) { p.Refuse(true) },
		"black hole": func(p *redistest.FaultProxy) { p.BlackHole(); p.Receive(redistest.Mute) },
	} {
		t.Run(what, func(t *testing.T) {
			world.Play(t, func(t *testing.T, w *world.World) {
				p := w.Process()
				if what == "black hole" {
					w.Release(w.Lock(t.Context(), p.MyLock))
				}
				break_(p.Net)
				for d := time.Millisecond; d < 5*time.Second; d = d*3 + time.Millisecond {
					if cancelled(w, p.MyLock, d) {
						t.Error("it was granted")
					}
				}
				began := w.Now()
				_ = p.Close()
				world.Within(t, "Close", w.Now()-began, 0, 1500*time.Millisecond)
				w.WantFree()
			})
		})
	}
}
