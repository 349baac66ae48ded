package multilock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Processes lock, work and lock again at once. Each gets its turn: those that have waited longest come first,
// also where servers are silent.
func TestQuorum_WaitersTakeTurns(t *testing.T) {
	for _, tc := range []struct {
		processes, silent int
		work, lasts       time.Duration
	}{
		{10, 0, 30 * time.Millisecond, 2 * time.Second},
		{4, 2, 5 * time.Millisecond, 1500 * time.Millisecond},
	} {
		t.Run(fmt.Sprintf("%d processes, %d silent servers, %v", tc.processes, tc.silent, tc.work), func(t *testing.T) {
			play(t, 5, func(t *testing.T, w *redises) {
				w.began()
				over, stop := context.WithTimeout(t.Context(), tc.lasts)
				defer stop()
				grants, longest := make([]int, tc.processes), make([]time.Duration, tc.processes)
				var all sync.WaitGroup
				for i := range tc.processes {
					p := w.process()
					for s := range 5 {
						p.nets[s].OnCommand(func(redistest.Command) redistest.Fault {
							if s < tc.silent {
								return redistest.Silence
							}
							return redistest.Delay(500 * time.Microsecond)
						})
					}
					all.Go(func() {
						for over.Err() == nil {
							began := time.Now()
							l, err := p.quorum().Lock(over)
							longest[i] = max(longest[i], time.Since(began))
							if err != nil {
								return
							}
							grants[i]++
							time.Sleep(tc.work)
							release(t, l)
						}
					})
				}
				all.Wait()
				sum := 0
				for _, n := range grants {
					sum += n
				}
				t.Logf("%d grants, for each process %v; the longest wait of each %v", sum, grants, longest)
				for i, n := range grants {
					if n < sum/tc.processes/2 || longest[i] > time.Second {
						t.Errorf("of %d grants to %d processes one had %d, and waited for %v", sum, tc.processes, n, longest[i])
					}
				}
				for _, p := range w.processes {
					for s := range 5 {
						p.nets[s].OnCommand(nil)
					}
				}
				time.Sleep(5 * time.Second) // until the places of those that did not say that they leave are over
			})
		})
	}
}
