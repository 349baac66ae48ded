// A request that its caller has taken back, and that stays in its queue for a while.

package conn

import (
	"sync"
	"testing"
	"time"
)

// Its call may be another's by then: a pooled one is emptied.
func TestARequestThatWasWithdrawnDoesNotLookAtItsCall(t *testing.T) {
	r := &request{call: new(Call)}
	if !r.withdraw() || r.withdraw() {
		t.Fatal("is not withdrawn once")
	}
	if r.prepare(new(clock), time.Now()) {
		t.Error("is sent")
	}
}

// It is sent, and its caller finds by when; or it is withdrawn, and the call is the
// caller's again at once. The race detector looks on.
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
		var wire sync.WaitGroup
		wire.Go(func() { prepared = r.prepare(new(clock), time.Now()) })
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
		wire.Wait()
		if prepared == withdrawn {
			t.Fatalf("sent: %t, withdrawn: %t", prepared, withdrawn)
		}
	}
	t.Logf("%d were sent, %d withdrawn", sendings, withdrawals)
}
