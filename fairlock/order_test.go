// These tests show who gets the lock, and when.

package fairlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
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
		first := w.Lock(t.Context(), processes[0])

		var mu sync.Mutex
		var order []int
		var tokens []int64
		var all sync.WaitGroup
		for i := range waiters {
			all.Go(func() {
				time.Sleep(time.Duration(i+1) * 7 * time.Millisecond)
				l, err := processes[i*5%8].Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order, tokens = append(order, i), append(tokens, l.Token())
				mu.Unlock()
				time.Sleep(3 * time.Millisecond)
				w.Release(l)
			})
		}
		w.At(1450 * time.Millisecond)
		w.wantQueue(waiters)
		if n, err := processes[3].QueueLength(t.Context()); n != waiters || err != nil {
			t.Errorf("queue length %d (%v)", n, err)
		}
		w.Release(first)
		all.Wait()
		w.wantOrder(order, waiters)
		last := first.Token()
		for i, token := range tokens {
			if token <= last {
				t.Errorf("grant %d has token %d after %d", i, token, last)
			}
			last = token
		}
		world.Within(t, "all", w.Now(), 2*time.Second, 2200*time.Millisecond)
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
		if _, err := w.RDB.Del(t.Context(), name).Result(); err != nil {
			t.Fatal(err)
		}
		_, err = c.TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)
		w.wantQueue(1)
		next := w.granted(waits)
		world.Within(t, "after a deleted key", w.Now(), 0, pollBound)
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		w.Release(next)
		l, err = c.TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.Release(l)
	})
}

// A waiter that gives up leaves no place, whether its context ended or its Client was closed.
func TestAWaiterThatGivesUpLeavesNoPlace(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, b, c := w.process(), w.process(), w.process()
		l := w.Lock(t.Context(), a)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		short, cancelShort := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancelShort()

		gone := []*world.Attempt{w.goLock(ctx, b), w.goLock(ctx, b), w.goLock(short, b), w.goLock(ctx, c)}
		stays := w.goLock(t.Context(), a)
		closed := w.goLock(t.Context(), c)
		w.wantQueue(6)
		w.At(500 * time.Millisecond)
		w.wantQueue(5)
		world.WantErr(t, gone[2].Err, holdfast.ErrBusy, context.DeadlineExceeded)

		cancel()
		synctest.Wait()
		w.wantQueue(2)
		for _, a := range []*world.Attempt{gone[0], gone[1], gone[3]} {
			if a.Pending() {
				t.Error("a cancelled wait goes on")
			}
			world.WantErr(t, a.Err, holdfast.ErrBusy, context.Canceled)
		}
		c.Close()
		<-closed.Done
		world.WantErr(t, closed.Err, holdfast.ErrClosed)
		w.wantQueue(1)

		w.Release(l)
		w.Release(w.granted(stays))
		w.wantQueue(0)
	})
}

// A release hands the lock over to a waiter that gives up at that instant. The next waiter gets the
// lock.
func TestHandedToOneThatGivesUp(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, b, c := w.process(), w.process(), w.process()
		l := w.Lock(t.Context(), a)
		ctx, cancel := context.WithCancel(t.Context())
		gone := w.goLock(ctx, b)
		stays := w.goLock(t.Context(), c)

		// From here on b's requests take 300 ms. So b is still on its way out when the lock is
		// handed to it.
		b.Net.OnCommand(func(c redistest.Command) redistest.Fault {
			if c.Name == "EVALSHA" {
				return redistest.Delay(300 * time.Millisecond)
			}
			return redistest.Pass
		})
		cancel()
		<-gone.Done
		world.WantErr(t, gone.Err, context.Canceled)
		w.Release(l)
		if fields := w.RDB.HVals(t.Context(), name).Val(); len(fields) != 1 || fields[0] != "0" {
			t.Errorf("handed over as %q", fields)
		}
		next := w.granted(stays)
		world.Within(t, "the next", w.Now(), 0, 700*time.Millisecond)
		w.Release(next)
		w.At(3 * time.Second)
		w.wantQueue(0)
	})
}

// A grant's message is lost. The waiter finds its grant by a poll.
func TestAGrantWhoseMessageWasLost(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, b := w.process(), w.process()
		l := w.Lock(t.Context(), a)
		waits := []*world.Attempt{w.goLock(t.Context(), b), w.goLock(t.Context(), b)}
		w.At(2 * time.Second)
		w.RDB.PubSubChannels(t.Context(), "*")
		b.Net.OnCommand(func(c redistest.Command) redistest.Fault {
			if c.Name == "PING" || c.Name == "SUBSCRIBE" {
				return redistest.Silence
			}
			return redistest.Pass
		})
		// The channel's connection is silent from its next PING on. From then on only polls find
		// anything.
		w.At(25 * time.Second)
		for i, a := range waits {
			released := w.Now()
			w.Release(l)
			l = w.granted(a)
			world.Within(t, "taken", w.Now()-released, 0, pollBound)
			if i == 0 && waits[1].Pending() == false {
				t.Error("two hold it")
			}
		}
		w.Release(l)
	})
}

// A process is cut off. The next waiter gets the lock when the place of the dead process has run
// out.
func TestTheDeadAreSkipped(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, dead, c := w.process(), w.process(), w.process()
		l := w.Lock(t.Context(), a)
		ctx, cancel := context.WithCancel(t.Context())
		lost := []*world.Attempt{w.goLock(ctx, dead), w.goLock(ctx, dead)}
		stays := []*world.Attempt{w.goLock(t.Context(), c), w.goLock(t.Context(), c)}
		w.At(10 * time.Second)
		w.wantQueue(4)
		dead.Net.Refuse(true)
		dead.Net.BlackHole()
		w.At(11 * time.Second)
		w.Release(l) // to the dead process
		l = w.granted(stays[0])
		world.Within(t, "the next", w.Now(), 13*time.Second, 15100*time.Millisecond)
		w.Release(l)
		l = w.granted(stays[1])
		w.Release(l)
		w.wantQueue(0)
		dead.Net.Cut()
		cancel()
		for _, a := range lost {
			<-a.Done
			world.WantErr(t, a.Err, context.Canceled)
		}
	})
}

// The server's clock is set back while a dead process is first in the queue. The lock goes on all the
// same when the place of the dead process has run out, also if the holder has died too.
func TestTheDeadAreSkippedAlthoughTheClockWasSetBack(t *testing.T) {
	for _, holderDies := range []bool{false, true} {
		t.Run(fmt.Sprintf("the holder dies: %v", holderDies), func(t *testing.T) {
			play(t, func(t *testing.T, w *fairWorld) {
				stop := w.Step(time.Hour)
				a, dead, c := w.process(), w.process(), w.process()
				l := w.Lock(t.Context(), a.FairMutex(name, holdfast.Fixed(6*time.Second)))
				ctx, cancel := context.WithCancel(t.Context())
				lost := w.goLock(ctx, dead)
				w.At(time.Second)
				dead.Net.Refuse(true)
				dead.Net.BlackHole()
				stop()
				defer w.Step(0)()
				w.At(2 * time.Second)
				stays := w.goLock(t.Context(), c)
				w.At(3 * time.Second)
				if !holderDies {
					w.Release(l) // to the dead process
				}
				l = w.granted(stays)
				world.Within(t, "the next", w.Now(), 5*time.Second, 11100*time.Millisecond)
				w.Release(l)
				w.wantQueue(0)
				dead.Net.Cut()
				cancel()
				<-lost.Done
				world.WantErr(t, lost.Err, context.Canceled)
			})
		})
	}
}

// A process is cut off for longer than its places are kept. It takes its places again.
func TestAPlaceThatWasLostIsTakenAgain(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, b, c := w.process(), w.process(), w.process()
		l := w.Lock(t.Context(), a)
		var early, late []*world.Attempt
		for range 5 {
			early = append(early, w.goLock(t.Context(), b))
		}
		for range 3 {
			late = append(late, w.goLock(t.Context(), c))
		}
		before := w.waiters()
		b.Net.Refuse(true)
		b.Net.Cut()
		w.At(8 * time.Second)
		w.wantQueue(3)
		b.Net.Refuse(false)
		w.At(12 * time.Second)
		w.wantQueue(8)
		if after := w.waiters(); !equal(before, after) {
			t.Errorf("the order was\n%q and is\n%q", before, after)
		}
		for _, a := range append(early, late...) {
			w.Release(l)
			l = w.granted(a)
		}
		w.Release(l)
	})
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Redis loses all data. The waiters stand in their order again, before any newcomer of their
// process.
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
		_, err := a.TryLock(t.Context())
		world.WantErr(t, err, holdfast.ErrBusy)

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

// Re-entry, renewal, fixed leases, Detach and Attach work as they do for a Mutex.
func TestLeases(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, b := w.process(), w.process()
		l := w.Lock(t.Context(), a)
		inner := w.Lock(l.Context(t.Context()), a)
		if inner.Token() != l.Token() || inner.Owner() != l.Owner() {
			t.Error("a nested lease is on another hold")
		}
		if n, err := b.HoldCount(t.Context(), l.Owner()); n != 2 || err != nil {
			t.Errorf("hold count %d (%v)", n, err)
		}
		w.Release(inner)
		w.At(100 * time.Second)
		if held, err := b.HeldBy(t.Context(), l.Owner()); !held || err != nil {
			t.Errorf("held: %v (%v)", held, err)
		}
		owner, err := l.Detach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		moved, err := b.Attach(t.Context(), owner)
		if err != nil {
			t.Fatal(err)
		}
		if moved.Token() != l.Token() {
			t.Errorf("token %d, was %d", moved.Token(), l.Token())
		}
		waits := w.goLock(t.Context(), a)
		w.Release(moved)
		l = w.granted(waits)
		w.Release(l)

		start := w.Now()
		fixed := w.Lock(t.Context(), a.FairMutex(name, holdfast.Fixed(10*time.Second)))
		waits = w.goLock(t.Context(), b)
		<-fixed.Done()
		world.WantErr(t, fixed.Err(), holdfast.ErrLost)
		l = w.granted(waits)
		world.Within(t, "after a fixed lease", w.Now()-start, 10*time.Second, 10*time.Second+100*time.Millisecond)
		world.WantErr(t, fixed.Release(t.Context()), holdfast.ErrLost)
		if held, err := a.HeldBy(t.Context(), l.Owner()); !held || err != nil {
			t.Errorf("held: %v (%v)", held, err)
		}
		w.Release(l)
	})
}

// The queries name the waiters and their places in the queue.
func TestQueries(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, b := w.process(), w.process()
		l := w.Lock(t.Context(), a)
		var tickets []*ticketed
		for range 4 {
			ticket := b.Ticket()
			tickets = append(tickets, &ticketed{ticket.Owner(), w.goLock(t.Context(), ticket)})
			time.Sleep(time.Millisecond)
		}
		waiters, err := a.Waiters(t.Context())
		if err != nil || len(waiters) != 4 {
			t.Fatalf("waiters %v (%v)", waiters, err)
		}
		for i, ticket := range tickets {
			if waiters[i] != ticket.owner {
				t.Errorf("waiter %d is %v, want %v", i, waiters[i], ticket.owner)
			}
			ahead, waits, err := a.Position(t.Context(), ticket.owner)
			if ahead != i || !waits || err != nil {
				t.Errorf("waiter %d has %d ahead, %v (%v)", i, ahead, waits, err)
			}
		}
		if _, waits, err := a.Position(t.Context(), l.Owner()); waits || err != nil {
			t.Errorf("the holder waits: %v (%v)", waits, err)
		}
		used := b.Ticket()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = used.Lock(ctx)
		world.WantErr(t, err, holdfast.ErrBusy, context.DeadlineExceeded)
		_, err = used.Lock(t.Context())
		world.WantErr(t, err, holdfast.ErrBadArgument)

		w.Release(l)
		for _, ticket := range tickets {
			l := w.granted(ticket.attempt)
			if l.Owner() != ticket.owner {
				t.Errorf("granted to %v, want %v", l.Owner(), ticket.owner)
			}
			w.Release(l)
		}
		if n, err := a.QueueLength(t.Context()); n != 0 || err != nil {
			t.Errorf("queue length %d (%v)", n, err)
		}
	})
}

type ticketed struct {
	owner   lease.Owner
	attempt *world.Attempt
}

// After a ForceRelease the next waiter in the queue gets the lock at once.
func TestForceRelease(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, b := w.process(), w.process()
		l := w.Lock(t.Context(), a)
		waits := w.goLock(t.Context(), b)
		start := w.Now()
		if held, err := a.ForceRelease(t.Context()); !held || err != nil {
			t.Errorf("force release: %v (%v)", held, err)
		}
		world.WantErr(t, l.Err(), holdfast.ErrLost)
		next := w.granted(waits)
		world.Within(t, "the next", w.Now()-start, 0, 100*time.Millisecond)
		w.Release(next)
		if held, err := a.ForceRelease(t.Context()); held || err != nil {
			t.Errorf("force release of a free lock: %v (%v)", held, err)
		}
	})
}

// No waiter asks more often than its polls allow.
func TestNobodyAsksInALoop(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, dead, c := w.process(), w.process(), w.process()
		w.Lock(t.Context(), a)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		lost := w.goLock(ctx, dead)
		stays := w.goLock(t.Context(), c)
		w.At(time.Second)
		dead.Net.Refuse(true)
		dead.Net.BlackHole()
		a.Net.Refuse(true)
		a.Net.BlackHole() // the lock runs out too, and the first waiter in the queue does not come
		before := c.Net.Count("EVALSHA")
		w.Release(w.granted(stays))
		asked := c.Net.Count("EVALSHA") - before
		if most := int(w.Now()/time.Second) + 15; asked > most {
			t.Errorf("%d requests in %v", asked, w.Now())
		}
		world.Within(t, "granted", w.Now(), 25*time.Second, 31*time.Second+100*time.Millisecond)
		dead.Net.Cut()
		a.Net.Cut()
		cancel()
		<-lost.Done
	})
}

// One process has many more waiters than one request takes.
func TestManyWaitersOfOneProcess(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		const waiters = 300
		a, b := w.process(), w.process()
		l := w.Lock(t.Context(), a)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range waiters {
			all.Go(func() {
				if _, err := b.Lock(ctx); err == nil {
					t.Error("granted")
				}
			})
		}
		w.At(20 * time.Second)
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

// leastKept returns for how much longer Redis keeps the place that it keeps for the shortest time,
// and does so all through span.
func (w *fairWorld) leastKept(span time.Duration) time.Duration {
	least := queueLease
	for range span / (50 * time.Millisecond) {
		time.Sleep(50 * time.Millisecond)
		for _, first := range w.RDB.ZRangeWithScores(w.T.Context(), aliveKey, 0, 0).Val() {
			least = min(least, time.Until(time.UnixMilli(int64(first.Score))))
		}
	}
	return least
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
		least := w.leastKept(span)
		sent := b.Net.Count("EVALSHA") - before
		t.Logf("kept for %v more at the least, %d commands in %v", least, sent, span)
		if least < queueLease-2*pollBound-100*time.Millisecond {
			t.Errorf("a place is kept for %v more", least)
		}
		if most := 9 + 5*(waiters/200); sent > most {
			t.Errorf("%d commands in %v, want %d at the most", sent, span, most)
		}
		cancel()
		all.Wait()
		w.Release(l)
	})
}

// Two waiters of one process come at once. Redis hears of one of them first, but that waiter gets
// its reply second. When the lock comes free without a release, that waiter gets it all the same.
func TestTheFirstOfTheLineIsNotTheFirstOfTheQueue(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a := w.process()
		w.Release(w.Lock(t.Context(), a)) // this loads the scripts
		w.RDB.HSet(t.Context(), name, "another:1", 1)
		w.RDB.PExpire(t.Context(), name, 3*time.Second)
		held := false
		a.Net.OnCommand(func(c redistest.Command) redistest.Fault {
			if c.Name == "EVALSHA" && len(c.Args) > 1 && c.Args[1] == "5" && !held {
				held = true
				return redistest.HoldReply(func() <-chan struct{} {
					late := make(chan struct{})
					time.AfterFunc(5*time.Millisecond, func() { close(late) })
					return late
				}())
			}
			return redistest.Pass
		})
		first := make(chan *world.Attempt)
		go func() { first <- w.goLock(t.Context(), a) }()
		time.Sleep(time.Millisecond)
		second := w.goLock(t.Context(), a)
		l := w.granted(<-first)
		world.Within(t, "the first", w.Now(), 3*time.Second, 3*time.Second+pollBound)
		w.Release(l)
		w.Release(w.granted(second))
	})
}
