package conn

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// A server that accepts dials but does not serve is dialled no more often than a server that is out
// of reach.
func TestTheDialAfterOneThatHasNotBeenFoundGoodPauses(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		g := newGate()
		enter := func() time.Duration {
			before := time.Now()
			p, err := g.enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			g.leave(p, false)
			return time.Since(before)
		}
		for range 5 {
			g.fail(false)
		}
		enter()
		var paused time.Duration
		for range 100 {
			paused += enter()
		}
		if mean := paused / 100; mean < maxRest*2/3 || mean > maxRest*5/6 {
			t.Errorf("%v between two dials, want %v or so", mean, maxRest*3/4)
		}

		time.AfterFunc(time.Millisecond, g.good) // a request was answered
		for range 10 {
			if waited := enter(); waited > time.Millisecond {
				t.Errorf("the server is dialled %v after it was found good", waited)
			}
		}
	})
}

// Calls wait at the gate behind the dial of a subscription, even if the user's Dialer does not look at
// its context. So that dial lasts no longer than the dial timeout.
func TestADialForASubscriptionHoldsTheGateForTheDialTimeoutAtMost(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		frozen := make(chan struct{})
		defer close(frozen)
		n := newNode("there", &redis.Options{
			DialTimeout: dialTimeout,
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				<-frozen
				return nil, net.ErrClosed
			},
		})
		n.gate.fail(true)
		subscribing := make(chan struct{})
		go func() {
			defer close(subscribing)
			_, _ = n.pass(t.Context(), "", "")
		}()
		synctest.Wait()
		began := time.Now()
		p, err := n.gate.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n.gate.leave(p, false)
		if waited, most := time.Since(began), dialTimeout+2*maxRest; waited > most {
			t.Errorf("a call waited for %v, want %v at the most", waited, most)
		}
		<-subscribing
	})
}
