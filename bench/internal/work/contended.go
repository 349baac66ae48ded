// All goroutines want one lock, and each of them locks it and releases it at once.

package work

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/interop"
)

// Contended returns the name of the workload with that many processes, and that many goroutines in
// each.
func Contended(processes, goroutines int) string {
	return fmt.Sprintf("one lock/%dx%d", processes, goroutines)
}

// Crowds are the crowds that have a workload: the processes, and the goroutines in each process.
var Crowds = [][2]int{{1, 16}, {1, 128}, {1, 1000}, {8, 125}}

func contended() []Workload {
	var all []Workload
	for _, crowd := range Crowds {
		processes, each := crowd[0], crowd[1]
		w := Workload{
			Name:      Contended(processes, each),
			Title:     fmt.Sprintf("one lock, %d processes, %d goroutines in each", processes, each),
			Processes: processes,
			Contenders: slices.Concat([]string{peer.Holdfast, peer.HoldfastWithoutCohort},
				peer.Without(peer.RedislockLinear), []string{peer.RedislockLocal, peer.RueidislockLocal}),
			Redisson: redisson(interop.Lock(processes, processes*each)),
			Run: func(ctx context.Context, s *Site) error {
				p, err := s.Open()
				if err != nil {
					return err
				}
				defer p.Close()
				return s.Locks(ctx, each, func(int) peer.Lock { return p.Lock(s.Name) }, nil)
			},
		}
		if processes == 1 {
			w.Title = fmt.Sprintf("one lock, one process, %d goroutines", each)
			if each >= 1000 {
				w.Window.Full = 2500 * time.Millisecond // a few grants for each
			}
		} else {
			// The slowest that is fair has a few grants for each goroutine in this time.
			w.Window.Full = 3500 * time.Millisecond
		}
		all = append(all, w)
	}
	return all
}
