// A server that has failed is trusted again as soon as it has served one request, also on a network that
// goes on losing requests.

package conn_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Every fifth request ends its connection, unanswered. If a pipeline of twenty went first, none would get
// through, and after each there would be a pause.
func TestAfterAnOutageCallersAreServedAlsoByANetworkThatLosesRequests(t *testing.T) {
	d := new(dialler)
	inBubble(t, func(t *testing.T, b *bubble) {
		calls := b.afterAnOutage(t, d, 100)
		var n atomic.Int64
		b.proxy.OnCommand(func(c redistest.Command) redistest.Fault {
			if isScript(c) && n.Add(1)%5 == 0 {
				return redistest.DropBefore
			}
			return redistest.Pass
		})
		back := time.Now()
		for _, c := range calls {
			if err := c.wait(t, 5*time.Second); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(back); took > 3*time.Second {
			t.Errorf("the last of %d callers was answered %v after the server was back", len(calls), took)
		}
	}, d.option)
}

// One request goes first: if a pipeline went, any loss in it would keep the server for one that fails.
func TestOneRequestGoesFirstToAServerThatHasFailed(t *testing.T) {
	d := new(dialler)
	inBubble(t, func(t *testing.T, b *bubble) {
		calls := b.afterAnOutage(t, d, 100)
		var came atomic.Int64
		held := make(chan struct{})
		b.proxy.OnCommand(func(c redistest.Command) redistest.Fault {
			if isScript(c) && came.Add(1) == 1 {
				return redistest.HoldReply(held)
			}
			return redistest.Pass
		})
		for came.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		if n := came.Load(); n != 1 {
			t.Errorf("%d requests went out before the first was answered", n)
		}
		close(held)
		for _, c := range calls {
			if err := c.wait(t, 100*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
	}, d.option)
}
