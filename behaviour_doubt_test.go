// This file is about what a waiter may believe of its process's place in the queue after the
// answers to some requests were lost.

package holdfast_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// A waiter reads the message of a hand-over only after the hand-over has lapsed. The waiter does
// not take the lock because of that message. The release that took the place for the process was
// not answered, so nothing tells the waiter whether the process has had the same place in the queue
// all the time. The waiter's own first request was not answered either, and this changes nothing.
func TestAMessageIsNotBelievedInAPlaceThatMayHaveBeenLost(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		slowReply, slowSubscription := make(chan struct{}), make(chan struct{})
		p.net.OnCommand(func(c redistest.Command) redistest.Fault {
			if strings.EqualFold(c.Name, "SUBSCRIBE") {
				return redistest.HoldReply(slowSubscription)
			}
			return p.observe(c)
		})
		held := w.lock(t.Context(), q.mutex)

		// Redis executes the waiter's first request, its answer is lost, and its second sending is
		// slow. Meanwhile another goroutine of the process is the head of the line.
		p.each(func(s sending) redistest.Fault {
			switch {
			case s.script == lockRun && s.n == 1:
				return redistest.CloseAfterExec
			case s.script == lockRun && s.n == 2:
				return redistest.HoldUntil(slowReply)
			}
			return redistest.Pass
		})
		waiter := w.goLock(t.Context(), p.mutex)
		w.at(w.now() + 100*time.Millisecond)
		if n := p.runs(lockRun); n != 2 {
			t.Fatalf("the waiter has asked %d times", n)
		}
		leads, cancel := context.WithCancel(t.Context())
		leader := w.goLock(leads, p.mutex)
		synctest.Wait()
		w.release(held)
		held, err := p.mutex.TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		close(slowReply)
		if !waiter.pending() || !leader.pending() {
			t.Fatal("not both wait")
		}

		// The release takes a place for the process and hands the lock to the process. The answer
		// of the release is lost. From then on Redis refuses all requests of the process, and only
		// its subscription works.
		var refused atomic.Bool
		refused.Store(true)
		p.each(func(s sending) redistest.Fault {
			switch {
			case !refused.Load():
				return redistest.Pass
			case s.script == releaseRun && s.n == 1:
				return redistest.CloseAfterExec
			}
			return redistest.ReplyError("ERR max number of clients reached")
		})
		begin := w.now()
		released := w.try(func() (*lease.Lease, error) { return nil, held.Release(t.Context()) })
		synctest.Wait()
		cancel() // now the waiter is the head, and has to ask in that place
		wantErr(t, second(leader.result()), context.Canceled)
		w.at(begin + 50*time.Millisecond)
		close(slowSubscription) // and the message arrives
		w.at(begin + 2600*time.Millisecond)
		other, err := q.mutex.TryLock(t.Context()) // the hand-over has lapsed
		if err != nil {
			t.Fatal(err)
		}
		refused.Store(false)
		w.at(begin + 3500*time.Millisecond)
		if !waiter.pending() {
			l, err := waiter.result()
			t.Fatalf("granted with token %d (%v) while another holds it with %d", l.Token(), err, other.Token())
		}
		w.release(other)
		l, err := waiter.result()
		if err != nil {
			t.Fatal(err)
		}
		if l.Token() <= other.Token() {
			t.Errorf("token %d after %d", l.Token(), other.Token())
		}
		w.release(l)
		released.result()
		w.wantFree()
	})
}

// An acquisition that is granted the lock too late gives up its grant. It does not give up the
// place that the same request took for the next waiter of its process: that waiter may already hold
// the lock in this place.
func TestAGrantThatCameTooLateIsGivenUpWithoutTheNextOne(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		m := p.Mutex(name, holdfast.Renewed(100*time.Millisecond))
		w.release(w.lock(t.Context(), m))
		held := w.lock(t.Context(), q.mutex)
		first := w.goLock(t.Context(), m)
		synctest.Wait()
		next := w.goLock(t.Context(), m)
		w.at(w.now() + 100*time.Millisecond)
		answer, before := make(chan struct{}), p.runs(enterRun)
		p.each(func(s sending) redistest.Fault {
			switch {
			case s.script == enterRun && s.n == before+1:
				return redistest.CloseAfterExec
			case s.script == enterRun && s.n == before+2:
				return redistest.HoldReply(answer)
			case s.script == releaseRun:
				return redistest.Delay(20 * time.Millisecond)
			}
			return redistest.Pass
		})
		w.rdb.Del(t.Context(), name)
		w.rdb.Publish(t.Context(), channel, "0")
		w.at(w.now() + 200*time.Millisecond)
		wantErr(t, held.Release(t.Context()), holdfast.ErrLost)
		close(answer)
		wantErr(t, second(first.result()), holdfast.ErrLost)
		time.Sleep(time.Millisecond)
		w.rdb.Publish(t.Context(), channel, "0") // the next waiter asks at once
		l, err := next.result()
		if err != nil {
			t.Fatal(err)
		}
		w.at(w.now() + 30*time.Millisecond)
		wantHeldAlone(t, l, q)
		w.at(w.now() + 1500*time.Millisecond)
		if err := l.Err(); err != nil {
			t.Errorf("the next one: %v", err)
		}
		w.release(l)
		w.wantFree()
	})
}

// A late request grants again a lock that was already granted and released. It also takes a place
// again for another waiter of its process, but that waiter has come and gone. No waiter is in that
// place, so the place must not stay in the queue.
func TestALateGrantLeavesNobodyInTheQueue(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		w.release(w.lock(t.Context(), p.mutex))
		held := w.lock(t.Context(), q.mutex)
		first := w.goLock(t.Context(), p.mutex)
		synctest.Wait()
		next := w.goLock(t.Context(), p.mutex)
		w.at(w.now() + 100*time.Millisecond)
		p.on(enterRun, 1, redistest.Delay(700*time.Millisecond))
		begin := w.now()
		w.release(held) // p asks, since another waiter stands behind its head
		synctest.Wait()
		p.hangUp() // p asks again, on another connection
		for _, a := range []*attempt{first, next} {
			l, err := a.result()
			if err != nil {
				t.Fatal(err)
			}
			w.release(l)
		}
		w.at(begin + 750*time.Millisecond)
		if len(w.holders(name)) == 0 || w.queued() != 1 {
			t.Fatal("the late request has not granted, or taken no place")
		}
		w.at(begin + 1100*time.Millisecond) // past the not-after of all requests
		if n := w.queued(); n != 0 {
			t.Errorf("%d in the queue", n)
		}
		w.wantFree()
	})
}

// The clean-up after such a late request leaves the place alone while a waiter waits in it. The
// next release hands the lock to that waiter.
func TestAPlaceThatIsWaitedInStaysWhenALateGrantIsGivenUp(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q, r := w.process(), w.process(), w.process()
		w.release(w.lock(t.Context(), p.mutex))
		held := w.lock(t.Context(), r.mutex)
		first := w.goLock(t.Context(), p.mutex)
		synctest.Wait()
		next := w.goLock(t.Context(), p.mutex)
		w.at(w.now() + 50*time.Millisecond)
		other := w.goLock(t.Context(), q.mutex)
		w.at(w.now() + 50*time.Millisecond)
		p.on(enterRun, 1, redistest.CloseAfterExec)
		w.release(held)
		l, err := first.result()
		if err != nil {
			t.Fatal(err)
		}
		w.release(l)
		if l, err = other.result(); err != nil {
			t.Fatal(err)
		}
		for range 2 { // after the first release of the clean-up, and after the last
			if n := w.queued(); n != 1 {
				t.Errorf("at %v: %d in the queue", w.now(), n)
			}
			w.at(w.now() + 550*time.Millisecond)
		}
		released := w.now()
		w.release(l)
		if l, err = next.result(); err != nil {
			t.Fatal(err)
		}
		within(t, "granted", next.at-released, 0, 5*time.Millisecond)
		w.release(l)
	})
}
