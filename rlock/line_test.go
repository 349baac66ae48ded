// This file is about the line of one process for a lock, and about hand-overs to a waiter in the
// line.

package rlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// A release may hand the lock to a waiter that is in the queue in Redis, but is not yet in the line
// of its process. The head of the line hears of the hand-over and finds no waiter to tell. The
// waiter asks Redis as soon as it is in the line.
func TestAWaiterThatIsHandedTheFairLockBeforeItStandsInLineHasItAtOnce(t *testing.T) {
	for what, releasedFirst := range map[string]bool{"released before the other comes": true, "and after": false} {
		play(t, what, func(t *testing.T, w *world.World) {
			p := w.Process()
			m := p.FairMutex(world.Name)
			held := w.Lock(t.Context(), m)
			answer := make(chan struct{})
			p.On(world.EnterRun, 1, redistest.HoldReply(answer))
			slow := w.GoLock(t.Context(), m)
			synctest.Wait() // the slow waiter is in the queue, and has not heard so
			if releasedFirst {
				w.Release(held)
			}
			quick := w.GoLock(t.Context(), m)
			w.At(w.Now() + 20*time.Millisecond)
			if !releasedFirst {
				w.Release(held)
			}
			w.At(w.Now() + 20*time.Millisecond)
			close(answer)
			heard := w.Now()
			for i, a := range []*world.Attempt{slow, quick} {
				l := granted(t, a)
				world.Within(t, []string{"slow", "quick"}[i]+" waited", a.At-heard, 0, 5*time.Millisecond)
				w.Release(l)
			}
		})
	}
}

// A message hands the lock to a waiter behind the head of the line. That waiter asks Redis at once,
// and the head does not ask before it.
func TestAHandOverToOneBehindTheHeadCostsOneRoundTrip(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		const trip = 20 * time.Millisecond
		p := w.Process()
		m := p.FairMutex(world.Name)
		held := w.Lock(t.Context(), w.Process().MyLock)
		answer := make(chan struct{})
		p.On(world.EnterRun, 1, redistest.HoldReply(answer))
		slow := w.GoLock(t.Context(), m)
		synctest.Wait()
		quick := w.GoLock(t.Context(), m) // is the head, though the slow one is before it in Redis
		w.At(w.Now() + 20*time.Millisecond)
		close(answer)
		w.At(w.Now() + 20*time.Millisecond)
		p.Each(func(world.Sending) redistest.Fault { return redistest.Delay(trip) })
		released := w.Now()
		w.Release(held)
		l := granted(t, slow)
		world.Within(t, "granted", slow.At-released, trip, trip+5*time.Millisecond)
		p.Each(nil)
		w.Release(l)
		l = granted(t, quick)
		w.Release(l)
	})
}

// A Mutex may have the name of an RWMutex's channel. It is another lock all the same, and its
// waiters stand in a line of their own.
func TestAMutexNamedAsTheChannelOfAnRWMutexHasALineOfItsOwn(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		held := w.Lock(t.Context(), w.Process().RWMutex("x"))
		writer := w.GoLock(t.Context(), p.RWMutex("x"))
		w.At(w.Now() + time.Second)
		mutex := w.GoLock(t.Context(), p.Mutex("redisson_rwlock:{x}"))
		l := granted(t, mutex)
		world.Within(t, "granted", mutex.At, time.Second, time.Second)
		w.Release(l)
		w.Release(held)
		l = granted(t, writer)
		w.Release(l)
	})
}
