// What a waiter may believe of its process's place in the queue, after requests whose
// answers were lost.

package holdfast_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// A hand-over that has lapsed is told by a message that was not read in time. The
// waiter does not begin by that message: nobody can tell it whether its process has had
// the same place in the queue all the time, since the release that took the place was
// not answered. That the waiter's own first request was not answered either changes
// nothing.
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

		// The waiter's first request is executed, its answer is lost, and its repetition
		// is slow. Another goroutine of the process leads the line meanwhile.
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
		synctest.Wait()
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

		// The release takes a place for the process, and hands the lock to it. The answer
		// is lost, and then the process is cut off, but for its subscription.
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
		cancel() // now the waiter leads, and is to ask in that place
		wantErr(t, second(leader.result()), context.Canceled)
		w.at(begin + 50*time.Millisecond)
		close(slowSubscription) // with the message in it
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
