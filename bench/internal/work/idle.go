// A thousand waiters wait in vain; the workload measures what that costs.

package work

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
)

// Idle is the name of the workload. IdleProcesses is the number of processes that wait in it.
const (
	Idle          = "idle waiters"
	IdleProcesses = 8
)

func idle() []Workload {
	const waiters = 1000
	return []Workload{{
		Name:       Idle,
		Title:      "1 000 waiters in 8 processes on one lock that is held",
		Processes:  1 + IdleProcesses, // the first process holds
		Contenders: slices.Concat([]string{peer.Holdfast}, peer.Without(peer.RedislockLinear)),
		// The first poll of each Holdfast process comes 1.25 s after it began to wait at the latest, and may
		// have to load its script. The processes begin together, so their polls do too: every 1.16 s on
		// average. A window of three polls counts neither one too many nor one too few of each.
		Window: Window{Warm: 2200 * time.Millisecond, Full: 3500 * time.Millisecond, Quick: 3500 * time.Millisecond, Rounds: measure.LeastRounds},
		Idle:   true,
		Run: func(ctx context.Context, s *Site) error {
			p, err := s.Open()
			if err != nil {
				return err
			}
			defer p.Close()
			lock := p.Lock(s.Name)
			if s.Process == 0 {
				s.Meter.Bystander()
				return lock.Pair(ctx, func() {
					s.Ready()
					<-ctx.Done()
				})
			}
			s.Ready()
			var all sync.WaitGroup
			for range waiters / IdleProcesses {
				all.Go(func() { _ = p.Lock(s.Name).Pair(ctx, nil) }) // the end of ctx ends it
			}
			all.Wait()
			return nil
		},
	}}
}
