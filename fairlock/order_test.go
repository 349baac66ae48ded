// These tests show who gets the lock, and when.

package fairlock_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fairlock"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// The lock is granted in the order in which the waiters arrived.
func TestGrantedInTheOrderOfArrival(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		const waiters = 200
		processes := make([]*process, 8)
		for i := range processes {
			processes[i] = w.process()
		}
		l := w.Lock(t.Context(), processes[0])
		var waits []*world.Attempt
		for i := range waiters {
			time.Sleep(7 * time.Millisecond)
			waits = append(waits, w.goLock(t.Context(), processes[i*5%8]))
		}
		w.wantQueue(waiters)
		if n, err := processes[3].QueueLength(t.Context()); n != waiters || err != nil {
			t.Errorf("queue length %d (%v)", n, err)
		}
		released := w.Now()
		for i, next := range waits {
			last := l.Token()
			w.Release(l)
			if l = w.granted(next); l.Token() <= last {
				t.Errorf("grant %d has token %d after %d", i, l.Token(), last)
			}
			time.Sleep(3 * time.Millisecond)
		}
		world.Within(t, "all", w.Now()-released, waiters*3*time.Millisecond, waiters*4*time.Millisecond)
		w.Release(l)
	})
}

func TestTryLockDoesNotBarge(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, b, c := w.process(), w.process(), w.process()
		l := w.Lock(t.Context(), a)
		waits := w.goLock(t.Context(), b)
		_, err := c.TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)

		// The lock is free, but a waiter waits: for a moment nobody holds the lock.
		must(t, w.RDB.Del(t.Context(), name).Err())
		world.WantErr(t, redistest.Err(c.TryLock(t.Context())), holdfast.ErrBusy)
		w.wantQueue(1)
		next := w.granted(waits)
		world.Within(t, "after a deleted key", w.Now(), 0, pollBound)
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		w.Release(next)
		l, err = c.TryLock(t.Context())
		must(t, err)
		w.Release(l)
	})
}

// A process is cut off. The next waiter gets the lock when the place of the dead process has run out, even
// if the server's clock is set back while the dead is first in the queue, and if the holder has died too. Until then no
// waiter asks more often than its polls allow.
func TestTheDeadAreSkipped(t *testing.T) {
	for what, tc := range map[string]struct {
		setBack, holderDies bool
		most                time.Duration
	}{
		"":                                       {false, false, 6100 * time.Millisecond},
		"the clock is set back":                  {true, false, 11100 * time.Millisecond},
		"the holder dies":                        {false, true, 11100 * time.Millisecond},
		"the clock is set back, the holder dies": {true, true, 11*time.Second + pollBound},
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *fairWorld) {
				a, dead, c := w.process(), w.process(), w.process()
				stop := func() {}
				if tc.setBack {
					stop = w.Step(time.Hour)
				}
				l := w.Lock(t.Context(), a.FairMutex(name, holdfast.Fixed(6*time.Second)))
				ctx, cancel := context.WithCancel(t.Context())
				lost := []*world.Attempt{w.goLock(ctx, dead), w.goLock(ctx, dead)}
				w.At(time.Second)
				dead.Net.Refuse(true)
				dead.Net.BlackHole()
				stop()
				if tc.setBack {
					defer w.Step(0)()
				}
				w.At(2 * time.Second)
				stays := []*world.Attempt{w.goLock(t.Context(), c), w.goLock(t.Context(), c)}
				w.wantQueue(4)
				w.At(3 * time.Second)
				before := c.Net.Count("EVALSHA")
				if !tc.holderDies {
					w.Release(l) // to the dead process
				}
				l = w.granted(stays[0])
				if asked := c.Net.Count("EVALSHA") - before; asked > 15 {
					t.Errorf("%d requests", asked)
				}
				world.Within(t, "the next", w.Now(), 5*time.Second, tc.most)
				w.Release(l)
				w.Release(w.granted(stays[1]))
				w.wantQueue(0)
				dead.Net.Cut()
				cancel()
				for _, a := range lost {
					<-a.Done
					world.WantErr(t, a.Err, context.Canceled)
				}
			})
		})
	}
}

// A process is cut off, or the server stands still, for longer than places are kept. The waiters take
// their places again, also one that it has by a priority.
func TestAPlaceThatWasLostIsTakenAgain(t *testing.T) {
	for _, standsStill := range []bool{false, true} {
		t.Run(fmt.Sprintf("the server stands still: %v", standsStill), func(t *testing.T) {
			play(t, func(t *testing.T, w *fairWorld) {
				a, b, c := w.process(), w.process(), w.process()
				l := w.Lock(t.Context(), a)
				var waits []*world.Attempt
				for i := range 8 {
					waits = append(waits, w.goLock(t.Context(), []*process{b, c}[i/5]))
				}
				high := w.goLock(t.Context(), b.FairMutex(name, fairlock.Priority(2))) // behind the head of its line
				waits = append([]*world.Attempt{high}, waits...)
				before := w.waiters()
				if standsStill {
					goes := make(chan struct{})
					for _, p := range w.Processes {
						p.Net.OnCommand(func(redistest.Command) redistest.Fault { return redistest.HoldUntil(goes) })
					}
					w.At(8 * time.Second)
					close(goes)
				} else {
					b.Unplug(true)
					w.At(8 * time.Second)
					w.wantQueue(3)
					b.Unplug(false)
				}
				w.At(13 * time.Second)
				if after := w.waiters(); !slices.Equal(before, after) {
					t.Errorf("the order was\n%q and is\n%q", before, after)
				}
				for _, a := range waits {
					w.Release(l)
					l = w.granted(a)
				}
				w.Release(l)
			})
		})
	}
}

// Redis loses all data. The waiters stand in their order again, before any newcomer of their process.
func TestAfterDataLoss(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, b := w.process(), w.process()
		w.Lock(t.Context(), a)
		var waits []*world.Attempt
		for range 6 {
			waits = append(waits, w.goLock(t.Context(), b))
		}
		w.At(1500 * time.Millisecond)
		w.RDB.FlushAll(t.Context())
		newcomer := w.goLock(t.Context(), b)
		if !newcomer.Pending() {
			t.Error("a newcomer passed those who wait")
		}
		for _, a := range append(waits, newcomer) {
			l := w.granted(a)
			time.Sleep(10 * time.Millisecond) // the first grant tells of the lost places
			w.Release(l)
		}
		world.Within(t, "all", w.Now(), 0, 1500*time.Millisecond+8*pollBound)
		w.At(w.Now() + 30*time.Second)
	})
}

// A Mutex of the same name waits in the same queue, with one seat for each process. The Mutex and
// the FairMutex hand the lock to each other. But a Mutex that finds the lock free takes it openly.
func TestOneQueue(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, b := w.process(), w.process()
		plain := b.Client.Mutex(name)
		l := w.Lock(t.Context(), plain)
		first := w.goLock(t.Context(), a)
		second := w.goLock(t.Context(), plain)
		third := w.goLock(t.Context(), plain)
		w.wantQueue(2) // of b, only its first waiter
		world.WantErr(t, redistest.Err(a.TryLock(t.Context())), holdfast.ErrBusy)

		fourth := w.goLock(t.Context(), a)
		for i, next := range []*world.Attempt{first, second, fourth, third} {
			w.Release(l)
			l = w.granted(next)
			world.Within(t, fmt.Sprint(i), w.Now(), 0, 0)
		}
		w.Release(l)
		w.wantQueue(0)
	})
}

// Java releases the lock and knows of no queue. The queue hears of this release.
func TestJavaReleases(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a := w.process()
		w.RDB.HSet(t.Context(), name, "java:1", 1)
		w.RDB.PExpire(t.Context(), name, time.Minute)
		fair := w.goLock(t.Context(), a)
		w.At(2500 * time.Millisecond)
		w.RDB.Del(t.Context(), name)
		w.RDB.Publish(t.Context(), channel, "0")
		w.Release(w.granted(fair))
		world.Within(t, "the queue", w.Now(), 2500*time.Millisecond, 2500*time.Millisecond)
	})
}

// The queries name the waiters and their places in the queue, and a ticket's owner before it waits.
func TestQueries(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, b := w.process(), w.process()
		l := w.Lock(t.Context(), a)
		var owners []lease.Owner
		var waits []*world.Attempt
		for range 4 {
			ticket := b.Ticket()
			owners, waits = append(owners, ticket.Owner()), append(waits, w.goLock(t.Context(), ticket))
			time.Sleep(time.Millisecond)
		}
		if got, err := a.Waiters(t.Context()); !slices.Equal(got, owners) || err != nil {
			t.Errorf("waiters %v (%v), want %v", got, err, owners)
		}
		for i, owner := range append(owners, l.Owner()) {
			ahead, waits, err := a.Position(t.Context(), owner)
			if waits != (i < 4) || waits && ahead != i || err != nil {
				t.Errorf("waiter %d has %d ahead, %v (%v)", i, ahead, waits, err)
			}
		}
		used := b.Ticket()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := used.Lock(ctx)
		world.WantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
		world.WantErr(t, redistest.Err(used.Lock(t.Context())), holdfast.ErrBadArgument)
		for i, a := range waits {
			w.Release(l)
			if l = w.granted(a); l.Owner() != owners[i] {
				t.Errorf("granted to %v, want %v", l.Owner(), owners[i])
			}
		}
		w.Release(l)
		if n, err := a.QueueLength(t.Context()); n != 0 || err != nil {
			t.Errorf("queue length %d (%v)", n, err)
		}
	})
}

// The head of a process keeps the places behind it, of which there are more than one request takes.
// It does so at each second poll, and no place goes without that for longer.
func TestThePlacesBehindTheHeadAreKept(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		const waiters, span = 600, 10 * time.Second
		a, b := w.process(), w.process()
		l := w.Lock(t.Context(), a)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range waiters {
			all.Go(func() { _, _ = b.Lock(ctx) })
		}
		time.Sleep(span)
		before := b.Net.Count("EVALSHA")
		least := placeKept // of what Redis keeps the place for that it keeps for the shortest time
		for range span / (50 * time.Millisecond) {
			time.Sleep(50 * time.Millisecond)
			for _, first := range w.RDB.ZRangeWithScores(t.Context(), aliveKey, 0, 0).Val() {
				least = min(least, time.Until(time.UnixMilli(int64(first.Score))))
			}
		}
		sent := b.Net.Count("EVALSHA") - before
		if least < placeKept-2*pollBound-100*time.Millisecond {
			t.Errorf("a place is kept for %v more", least)
		}
		if most := 9 + 5*(waiters/200); sent > most {
			t.Errorf("%d commands in %v, want %d at the most", sent, span, most)
		}
		w.wantQueue(waiters)
		if n, err := a.QueueLength(t.Context()); n != waiters || err != nil {
			t.Errorf("queue length %d (%v)", n, err)
		}
		cancel()
		all.Wait()
		synctest.Wait()
		w.wantQueue(0)
		w.Release(l)
	})
}

func waiterID(i int) string { return fmt.Sprintf("33333333-3333-3333-3333-333333333333:%d", i) }

// crowd puts the waiters with the numbers from to to-1 into a queue. The place of every fifth waiter is no longer kept.
func (w *fairWorld) crowd(from, to int) {
	pipe := w.RDB.Pipeline()
	for i := from; i < to; i++ {
		kept := time.Now().Add(time.Hour)
		if i%5 == 0 {
			kept = time.Now().Add(-time.Second)
		}
		pipe.ZAdd(w.T.Context(), queueKey, redis.Z{Member: waiterID(i), Score: 1.7e15 + float64(i*7)})
		pipe.ZAdd(w.T.Context(), aliveKey, redis.Z{Member: waiterID(i), Score: float64(kept.UnixMilli())})
	}
	must(w.T, redistest.Err(pipe.Exec(w.T.Context())))
}

// Each waiter that stays is listed, in order and once, though others come and go between two parts.
func TestWaitersAreListedSomeAtATime(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		p := w.process()
		if _, err := p.Waiters(t.Context()); err != nil { // this loads the script
			t.Fatal(err)
		}
		w.crowd(1, 1000)
		parts := 0
		p.Net.OnCommand(func(cmd redistest.Command) redistest.Fault {
			if strings.HasPrefix(cmd.Name, "EVAL") {
				if parts++; parts == 2 { // the first 400 waiters go, and some others come
					for i := range 400 {
						w.RDB.ZRem(t.Context(), queueKey, waiterID(i+1))
						w.RDB.ZRem(t.Context(), aliveKey, waiterID(i+1))
					}
					w.crowd(1000, 1010)
				}
			}
			return redistest.Pass
		})
		got, err := p.Waiters(t.Context())
		if err != nil || parts != 4 && parts != 5 {
			t.Fatalf("in %d parts: %v", parts, err)
		}
		last, stayed := 0, 0
		for _, o := range got {
			_, id, _ := strings.Cut(o.String(), ":")
			i, _ := strconv.Atoi(id)
			if stays := i > 400 && i < 1000; i <= last || stays && i%5 == 0 {
				t.Fatalf("%d is in the list, after %d", i, last)
			} else if stays {
				stayed++
			}
			last = i
		}
		if stayed != 480 || last != 1009 {
			t.Errorf("%d that stayed are in the list, want 480; the last is %d, want 1009", stayed, last)
		}
		w.RDB.Del(t.Context(), queueKey, aliveKey)
	})
}
