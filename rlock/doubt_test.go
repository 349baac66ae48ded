// This file is about what a waiter may believe of its process's place in the queue after the
// answers to some requests were lost.

package rlock_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// A waiter reads the message of a hand-over only after the hand-over has lapsed. The waiter does
// not take the lock because of that message. The release that took the place for the process was
// not answered, so nothing tells the waiter whether the process has had the same place in the queue
// all the time. The waiter's own first request was not answered either, and this changes nothing.
func TestAMessageIsNotBelievedInAPlaceThatMayHaveBeenLost(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		slowReply, slowSubscription := make(chan struct{}), make(chan struct{})
		p.Net.OnCommand(func(c redistest.Command) redistest.Fault {
			if strings.EqualFold(c.Name, "SUBSCRIBE") {
				return redistest.HoldReply(slowSubscription)
			}
			return p.Observe(c)
		})
		held := w.Lock(t.Context(), q.MyLock)

		// Redis executes the waiter's first request, its answer is lost, and its second sending is
		// slow. Meanwhile another goroutine of the process is the head of the line.
		p.Each(func(s world.Sending) redistest.Fault {
			switch {
			case s.Script == world.LockRun && s.N == 1:
				return redistest.CloseAfterExec
			case s.Script == world.LockRun && s.N == 2:
				return redistest.HoldUntil(slowReply)
			}
			return redistest.Pass
		})
		waiter := w.GoLock(t.Context(), p.MyLock)
		w.At(w.Now() + 100*time.Millisecond)
		if n := p.Runs(world.LockRun); n != 2 {
			t.Fatalf("the waiter has asked %d times", n)
		}
		leads, cancel := context.WithCancel(t.Context())
		leader := w.GoLock(leads, p.MyLock)
		synctest.Wait()
		w.Release(held)
		held, err := p.MyLock.TryLock(t.Context())
		must(t, err)
		close(slowReply)
		if !waiter.Pending() || !leader.Pending() {
			t.Fatal("not both wait")
		}

		// The release takes a place for the process and hands the lock to the process. The answer of the release is
		// lost. From then on Redis refuses all requests of the process, and only its subscription works.
		var refused atomic.Bool
		refused.Store(true)
		p.Each(func(s world.Sending) redistest.Fault {
			switch {
			case !refused.Load():
				return redistest.Pass
			case s.Script == world.ReleaseRun && s.N == 1:
				return redistest.CloseAfterExec
			}
			return redistest.ReplyError("ERR max number of clients reached")
		})
		begin := w.Now()
		released := w.Try(func() (*lease.Lease, error) { return nil, held.Release(t.Context()) })
		synctest.Wait()
		cancel() // now the waiter is the head, and has to ask in that place
		world.WantErr(t, second(leader.Result()), context.Canceled)
		w.At(begin + 50*time.Millisecond)
		close(slowSubscription) // and the message arrives
		w.At(begin + 2600*time.Millisecond)
		other, err := q.MyLock.TryLock(t.Context()) // the hand-over has lapsed
		must(t, err)
		refused.Store(false)
		w.At(begin + 3500*time.Millisecond)
		if !waiter.Pending() {
			l, err := waiter.Result()
			t.Fatalf("granted with token %d (%v) while another holds it with %d", l.Token(), err, other.Token())
		}
		w.Release(other)
		l := granted(t, waiter)
		if l.Token() <= other.Token() {
			t.Errorf("token %d after %d", l.Token(), other.Token())
		}
		w.Release(l)
		released.Result()
		w.WantFree()
	})
}

// An acquisition that is granted the lock too late gives up its grant. It does not give up the place that the same
// request took for the next waiter of its process: that waiter may already hold the lock in this place.
func TestAGrantThatCameTooLateIsGivenUpWithoutTheNextOne(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held, first, next := twoBehind(w, p, p.Mutex(world.Name, holdfast.Renewed(100*time.Millisecond)))
		answer, before := make(chan struct{}), p.Runs(world.EnterRun)
		p.Each(func(s world.Sending) redistest.Fault {
			switch {
			case s.Script == world.EnterRun && s.N == before+1:
				return redistest.CloseAfterExec
			case s.Script == world.EnterRun && s.N == before+2:
				return redistest.HoldReply(answer)
			case s.Script == world.ReleaseRun:
				return redistest.Delay(20 * time.Millisecond)
			}
			return redistest.Pass
		})
		w.RDB.Del(t.Context(), world.Name)
		w.RDB.Publish(t.Context(), world.Channel, "0")
		w.At(w.Now() + 200*time.Millisecond)
		world.WantErr(t, held.Release(t.Context()), holdfast.ErrLost)
		close(answer)
		world.WantErr(t, second(first.Result()), holdfast.ErrLost)
		time.Sleep(time.Millisecond)
		w.RDB.Publish(t.Context(), world.Channel, "0") // the next waiter asks at once
		l := granted(t, next)
		w.At(w.Now() + 30*time.Millisecond)
		wantHeldAlone(t, l, q)
		w.At(w.Now() + 1500*time.Millisecond)
		must(t, l.Err())
		w.Release(l)
		w.WantFree()
	})
}

// A late request grants again a lock that was already granted and released. It also takes a place
// again for another waiter of its process, but that waiter has come and gone. No waiter is in that
// place, so the place must not stay in the queue.
func TestALateGrantLeavesNobodyInTheQueue(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		held, first, next := twoBehind(w, p, p.MyLock)
		p.On(world.EnterRun, 1, redistest.Delay(700*time.Millisecond))
		begin := w.Now()
		w.Release(held) // p asks, since another waiter stands behind its head
		synctest.Wait()
		p.HangUp() // p asks again, on another connection
		for _, a := range []*world.Attempt{first, next} {
			w.Release(granted(t, a))
		}
		w.At(begin + 750*time.Millisecond)
		wantQueued(w, 1)
		if len(w.Holders(world.Name)) == 0 {
			t.Fatal("the late request has not granted")
		}
		w.At(begin + 1100*time.Millisecond) // past the not-after of all requests
		wantQueued(w, 0)
		w.WantFree()
	})
}

// The clean-up after such a late request leaves the place alone while a waiter waits in it. The
// next release hands the lock to that waiter.
func TestAPlaceThatIsWaitedInStaysWhenALateGrantIsGivenUp(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		held, first, next := twoBehind(w, p, p.MyLock)
		other := w.GoLock(t.Context(), q.MyLock)
		w.At(w.Now() + 50*time.Millisecond)
		p.On(world.EnterRun, 1, redistest.CloseAfterExec)
		w.Release(held)
		w.Release(granted(t, first))
		l := granted(t, other)
		for range 2 { // after the first release of the clean-up, and after the last
			wantQueued(w, 1)
			w.At(w.Now() + 550*time.Millisecond)
		}
		released := w.Now()
		w.Release(l)
		l = granted(t, next)
		world.Within(t, "granted", next.At-released, 0, 5*time.Millisecond)
		w.Release(l)
	})
}
