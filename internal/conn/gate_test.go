package conn

import (
	"testing"
	"time"

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
