// A server that has failed is trusted again as soon as it has served one request, also on a network that
// goes on losing requests.

package conn_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// afterAnOutage has that many calls queue while the server cannot be reached, for so long that the
// pauses between dials are as long as they get. Then it lets the server be reached.
func (b *bubble) afterAnOutage(t *testing.T, d *dialler, callers int) []*started {
	t.Helper()
	b.warm(t)
	d.down.Store(true)
	b.proxy.Cut()
	calls := make([]*started, callers)
	for i := range calls {
		calls[i] = start(b.Manager, newCount(fmt.Sprint("k", i)))
	}
	time.Sleep(20 * time.Second)
	d.down.Store(false)
	return calls
}

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

// A server that says that it does not serve is dialled no more often than one that is gone, however it ends
// the connections on which it says so.
func TestAnAnswerThatTheServerDoesNotServeYetIsNoProof(t *testing.T) {
	for _, reply := range []string{
		"LOADING Redis is loading the dataset in memory",
		"CLUSTERDOWN The cluster is down",
	} {
		for how, end := range map[string]redistest.Fault{"closed": redistest.DropBefore, "silent": redistest.Silence} {
			for _, callers := range []int{1, 100} {
				t.Run(fmt.Sprint(reply[:5], " ", how, " ", callers), func(t *testing.T) {
					d := new(dialler)
					inBubble(t, func(t *testing.T, b *bubble) {
						calls := b.afterAnOutage(t, d, callers)
						b.proxy.OnCommand(firstOfEach(redistest.ReplyError(reply), end))
						from := d.dials.Load()
						time.Sleep(20 * time.Second)
						if dials := d.dials.Load() - from; dials > 20*2 {
							t.Errorf("%d dials in 20 s", dials)
						}
						b.proxy.OnCommand(nil)
						for _, c := range calls {
							if err := c.wait(t, 5*time.Second); err != nil {
								t.Fatal(err)
							}
						}
					}, d.option)
				})
			}
		}
	}
}

// firstOfEach returns a rule that gives the first script of each connection one fault, and the others
// another.
func firstOfEach(first, others redistest.Fault) func(redistest.Command) redistest.Fault {
	var mu sync.Mutex
	met := make(map[int64]bool)
	return func(c redistest.Command) redistest.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case !isScript(c):
			return redistest.Pass
		case met[c.Conn]:
			return others
		}
		met[c.Conn] = true
		return first
	}
}
