// The clock estimate keeps its bound, whatever the delays.

package server

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// The estimate is never ahead of the server, even if answers take their time and overtake each
// other. So a not-after made from the estimate never lets a request run longer than was meant.
func TestClockIsNeverAheadOfTheServer(t *testing.T) {
	// TIME has no finer unit.
	const resolution = time.Microsecond
	redistest.Bubble(t, func(t *testing.T) {
		for seed := range uint64(200) {
			random := rand.New(rand.NewPCG(seed, 1))
			ahead := time.Duration(random.Int64N(int64(time.Hour))) - 30*time.Minute
			server := func() time.Time { return time.Now().Add(ahead) }
			sleep := func() { time.Sleep(time.Duration(random.Int64N(int64(200 * time.Millisecond)))) }

			c := clock{epoch: time.Now()}
			var onTheWay []int64 // what the server has said
			for range 50 {
				sleep()
				onTheWay = append(onTheWay, server().UnixMicro())
				sleep()
				if random.IntN(2) == 0 {
					i := random.IntN(len(onTheWay))
					c.observe(onTheWay[i], time.Now())
					onTheWay = append(onTheWay[:i], onTheWay[i+1:]...)
				}
				if !c.known {
					continue
				}
				for _, d := range []time.Duration{0, time.Second, -time.Second, time.Hour} {
					got, want := c.at(time.Now().Add(d)), server().Add(d).Add(resolution).UnixMicro()
					if got > want {
						t.Fatalf("seed %d: the estimate is %d µs ahead of the server", seed, got-want)
					}
				}
			}
		}
	})
}

// An answer that arrives at once makes the estimate exact.
func TestClockIsExactWithoutDelay(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		c := clock{epoch: time.Now()}
		if c.known {
			t.Error("known before anything was heard")
		}
		time.Sleep(time.Second)
		c.observe(time.Now().Add(time.Hour).UnixMicro(), time.Now())
		time.Sleep(time.Minute)
		if got, want := c.at(time.Now()), time.Now().Add(time.Hour).UnixMicro(); got != want {
			t.Errorf("%d, want %d", got, want)
		}
	})
}
