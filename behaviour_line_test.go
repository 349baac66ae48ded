// This file is about the line of one process for a lock, and about hand-overs to a waiter in the
// line.

package holdfast_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// A release may hand the lock to a waiter that is in the queue in Redis, but is not yet in the line
// of its process. The head of the line hears of the hand-over and finds no waiter to tell. The
// waiter asks Redis as soon as it is in the line.
func TestAWaiterThatIsHandedTheFairLockBeforeItStandsInLineHasItAtOnce(t *testing.T) {
	for what, releasedFirst := range map[string]bool{"released before the other comes": true, "and after": false} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p := w.process()
				m := p.FairMutex(name)
				held := w.lock(t.Context(), m)
				answer := make(chan struct{})
				p.on(enterRun, 1, redistest.HoldReply(answer))
				slow := w.goLock(t.Context(), m)
				synctest.Wait() // the slow waiter is in the queue, and has not heard so
				if releasedFirst {
					w.release(held)
				}
				quick := w.goLock(t.Context(), m)
				w.at(w.now() + 20*time.Millisecond)
				if !releasedFirst {
					w.release(held)
				}
				w.at(w.now() + 20*time.Millisecond)
				close(answer)
				heard := w.now()
				for i, a := range []*attempt{slow, quick} {
					l, err := a.result()
					if err != nil {
						t.Fatal(err)
					}
					within(t, []string{"slow", "quick"}[i]+" waited", a.at-heard, 0, 5*time.Millisecond)
					w.release(l)
				}
			})
		})
	}
}

// A message hands the lock to a waiter behind the head of the line. That waiter asks Redis at once,
// and the head does not ask before it.
func TestAHandOverToOneBehindTheHeadCostsOneRoundTrip(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		const trip = 20 * time.Millisecond
		p := w.process()
		m := p.FairMutex(name)
		held := w.lock(t.Context(), w.process().mutex)
		answer := make(chan struct{})
		p.on(enterRun, 1, redistest.HoldReply(answer))
		slow := w.goLock(t.Context(), m)
		synctest.Wait()
		quick := w.goLock(t.Context(), m) // is the head, though the slow one is before it in Redis
		w.at(w.now() + 20*time.Millisecond)
		close(answer)
		w.at(w.now() + 20*time.Millisecond)
		p.each(func(sending) redistest.Fault { return redistest.Delay(trip) })
		released := w.now()
		w.release(held)
		l, err := slow.result()
		if err != nil {
			t.Fatal(err)
		}
		within(t, "granted", slow.at-released, trip, trip+5*time.Millisecond)
		p.each(nil)
		w.release(l)
		if l, err = quick.result(); err != nil {
			t.Fatal(err)
		}
		w.release(l)
	})
}

// A Mutex may have the name of an RWMutex's channel. It is another lock all the same, and its
// waiters stand in a line of their own.
func TestAMutexNamedAsTheChannelOfAnRWMutexHasALineOfItsOwn(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p := w.process()
		held := w.lock(t.Context(), w.process().RWMutex("x"))
		writer := w.goLock(t.Context(), p.RWMutex("x"))
		w.at(w.now() + time.Second)
		mutex := w.goLock(t.Context(), p.Mutex("redisson_rwlock:{x}"))
		l, err := mutex.result()
		if err != nil {
			t.Fatal(err)
		}
		within(t, "granted", mutex.at, time.Second, time.Second)
		w.release(l)
		w.release(held)
		if l, err = writer.result(); err != nil {
			t.Fatal(err)
		}
		w.release(l)
	})
}
