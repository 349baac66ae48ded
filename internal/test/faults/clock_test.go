// Redis's clock runs at another rate, and still a lease ends here before it ends in Redis.

package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

func TestClocksOfDifferentRates(t *testing.T) {
	for _, rate := range []float64{1.01, 0.99} {
		for _, length := range []time.Duration{time.Second, 2 * time.Second, 30 * time.Second} {
			for what, option := range map[string]holdfast.LeaseOption{"fixed": holdfast.Fixed(length), "renewed": holdfast.Renewed(length)} {
				t.Run(fmt.Sprint(rate, " ", what, " ", length), func(t *testing.T) {
					world.Play(t, func(t *testing.T, w *world.World) {
						stop := runAt(w, rate)
						p := w.Process()
						l := w.Lock(t.Context(), p.Mutex(world.Name, option))
						time.Sleep(length * 6 / 10) // it has been renewed, if it is
						p.Unplug(true)
						ended := make(chan time.Duration, 1)
						context.AfterFunc(l.Context(t.Context()), func() { ended <- w.PTTL(world.Name) })
						if left := <-ended; left <= 0 {
							t.Errorf("the holder was notified when Redis had ended its lease")
						} else if most := length/50 + 15*time.Millisecond; left > most {
							t.Errorf("the holder was notified %v ahead, want at most %v", left, most)
						}
						time.Sleep(length / 10)
						w.WantFree()
						stop()
					})
				})
			}
		}
	}
}

// runAt has the server's clock run at that rate, until stop is called.
func runAt(w *world.World, rate float64) (stop func()) {
	done := make(chan struct{})
	go func() {
		for {
			w.Mini.SetTime(w.Start.Add(time.Duration(float64(w.Now()) * rate)))
			select {
			case <-time.After(time.Millisecond):
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}
