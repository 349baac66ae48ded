// Callers leave the queue of a node without a cost for each other, and a request that was withdrawn has no
// more to do with its call.

package server

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/call"
)

// Those that stay keep their places. Each removal of those that have left takes as long as the queue is, so there
// are few: one each time that half of the queue has left.
func TestCallersThatLeaveTheQueueDoNotWaitForEachOther(t *testing.T) {
	const callers = 10_000
	n := &New("", &redis.Options{}, nil, nil).callers
	var stay []*request
	for i := range callers {
		r := new(request)
		n.queue = append(n.queue, r)
		if i%1000 == 7 {
			stay = append(stay, r)
		}
	}
	removals := 0
	for _, r := range slices.Clone(n.queue) {
		if before := len(n.queue); !slices.Contains(stay, r) && r.withdraw() {
			if n.forget(); len(n.queue) < before {
				removals++
			}
		}
	}
	if removals > 15 || len(n.queue) > 2*len(stay)+1 {
		t.Errorf("%d removals for %d callers, and %d are left in the queue", removals, callers, len(n.queue))
	}
	if left := slices.DeleteFunc(n.queue, (*request).isWithdrawn); !slices.Equal(left, stay) {
		t.Errorf("%d wait, or in another order, want %d", len(left), len(stay))
	}
}

// A withdrawn request does not look at its call: a pooled call is emptied, and another caller may
// use it by then.
func TestARequestThatWasWithdrawnDoesNotLookAtItsCall(t *testing.T) {
	r := &request{call: new(call.Call)}
	if !r.withdraw() || r.withdraw() {
		t.Fatal("is not withdrawn once")
	}
	if r.claim(new(clock), time.Now(), call.Window) {
		t.Error("is sent")
	}
}

// A request is either sent, and its caller learns its not-after, or withdrawn, and the call belongs
// to the caller again at once. The race detector checks that the two never touch the call together.
func TestARequestIsSentOrWithdrawn(t *testing.T) {
	var smalls call.Smalls
	script := call.NewScript("s", "return {1, 0}", call.Timeless)
	sendings := 0
	for round := range 2000 {
		c := smalls.Get(script, "key", "beside")
		c.SetNumber(0, 7)
		r := new(requests).get()
		r.call = &c.Call
		var prepared, withdrawn bool
		send := func() {
			if prepared = r.claim(new(clock), time.Now(), call.Window); prepared {
				(&wire{node: new(Node)}).compose([]*request{r}, time.Now())
			}
		}
		leave := func() {
			if withdrawn = r.withdraw(); withdrawn {
				smalls.Put(&c.Call)
			}
		}
		var both sync.WaitGroup
		both.Go([]func(){send, leave}[round%2]) // either may be the faster
		[]func(){leave, send}[round%2]()
		both.Wait()
		if prepared == withdrawn || prepared && (r.state.Load() != sent || r.sent.IsZero()) {
			t.Fatalf("sent: %t, withdrawn: %t", prepared, withdrawn)
		}
		if prepared {
			sendings++
		}
	}
	t.Logf("%d of 2000 were sent", sendings)
}
