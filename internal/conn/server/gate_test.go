// The gate lets a server be dialled at once while it is well, and after failures only after pauses that grow.

package server

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// dialled has the gate see n dials that begin together, and returns how long the first waited at the gate.
func (g *gate) dialled(t *testing.T, n int, failed bool) time.Duration {
	t.Helper()
	before, passes := time.Now(), make([]pass, n)
	for i := range passes {
		p, err := g.enter(t.Context())
		redistest.Must(t, err)
		passes[i] = p
	}
	waited := time.Since(before)
	for _, p := range passes {
		g.leave(p, failed)
	}
	return waited
}

// Each letter is an event: f and d are a dial that fails and one that succeeds, p are four parallel dials that
// fail, u and s are a server that does not serve and one that is silent, g is an answer, h is a hurry. After
// them the next dial waits for least to most.
func TestEachEventAtTheGate(t *testing.T) {
	const rest, long = firstRest, maxRest
	for events, want := range map[string]struct{ least, most time.Duration }{
		"": {}, "d": {}, "fffg": {}, "sssg": {}, "u": {}, "ffffh": {}, "ug": {},
		"f": {rest / 2, rest}, "s": {rest / 2, rest}, "p": {rest / 2, rest}, "fgf": {rest / 2, rest},
		"ff": {2 * rest, 4 * rest}, "uu": {2 * rest, 4 * rest}, "sd": {rest / 2, rest}, "us": {2 * rest, 4 * rest},
		"fff": {8 * rest, 16 * rest}, "pff": {8 * rest, 16 * rest}, "ffff": {long / 2, long}, "fffffff": {long / 2, long},
		"fffffd": {long / 2, long}, "fffffddd": {long / 2, long}, // it can be dialled, and serves nobody
	} {
		redistest.Bubble(t, func(t *testing.T) {
			for range 20 {
				g := newGate(ioTimeout)
				for _, event := range events {
					switch event {
					case 'f', 'd':
						g.dialled(t, 1, event == 'f')
					case 'p':
						g.dialled(t, 4, true)
					case 'u', 's':
						g.fail(event == 's')
					case 'g':
						g.good()
					case 'h':
						g.hurry()
					}
				}
				if waited := g.dialled(t, 1, false); waited < want.least || waited > want.most {
					t.Errorf("after %q the next dial waits for %v, want %v to %v", events, waited, want.least, want.most)
				}
			}
		})
	}
}

// A dial that waits goes on as soon as a request was answered.
func TestAnAnswerOpensTheGate(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		g := newGate(ioTimeout)
		for range 5 {
			g.fail(false)
		}
		time.AfterFunc(time.Millisecond, g.good)
		for range 10 {
			if waited := g.dialled(t, 1, false); waited > time.Millisecond {
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
		n := New("there", &redis.Options{
			DialTimeout: DialTimeout,
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				<-frozen
				return nil, net.ErrClosed
			},
		}, nil, nil)
		n.gate.fail(true)
		subscribing := make(chan struct{})
		go func() {
			defer close(subscribing)
			_, _ = n.pass(t.Context(), "", "")
		}()
		synctest.Wait()
		began := time.Now()
		p, err := n.gate.enter(t.Context())
		redistest.Must(t, err)
		n.gate.leave(p, false)
		if waited, most := time.Since(began), DialTimeout+2*maxRest; waited > most {
			t.Errorf("a call waited for %v, want %v at the most", waited, most)
		}
		<-subscribing
	})
}
