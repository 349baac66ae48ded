// A request that its caller has withdrawn stays in its queue for a while.

package conn

import (
	"sync"
	"testing"
	"time"
)

// A withdrawn request does not look at its call: a pooled call is emptied, and another caller may
// use it by then.
func TestARequestThatWasWithdrawnDoesNotLookAtItsCall(t *testing.T) {
	r := &request{call: new(Call)}
	if !r.withdraw() || r.withdraw() {
		t.Fatal("is not withdrawn once")
	}
	if r.claim(new(clock), time.Now()) {
		t.Error("is sent")
	}
}

// A request is either sent, and its caller learns its not-after, or withdrawn, and the call belongs
// to the caller again at once. The race detector checks that the two never touch the call together.
func TestARequestIsSentOrWithdrawn(t *testing.T) {
	var smalls Smalls
	script := NewScript("s", "return {1, 0}", Timeless)
	sendings, withdrawals := 0, 0
	for range 2000 {
		c := smalls.Get(script, "key", "beside")
		c.Number(0, 7)
		r := new(requests).get()
		r.call = &c.Call
		prepared := false
		var sending sync.WaitGroup
		sending.Go(func() {
			if prepared = r.claim(new(clock), time.Now()); prepared {
				(&wire{node: new(node)}).compose([]*request{r}, time.Now())
			}
		})
		withdrawn := r.withdraw()
		switch {
		case withdrawn:
			withdrawals++
			smalls.Put(&c.Call)
		case r.state.Load() != sent || r.sent.IsZero():
			t.Fatal("is neither sent nor withdrawn")
		default:
			sendings++
		}
		sending.Wait()
		if prepared == withdrawn {
			t.Fatalf("sent: %t, withdrawn: %t", prepared, withdrawn)
		}
	}
	t.Logf("%d were sent, %d withdrawn", sendings, withdrawals)
}
