// A pair is an acquire and a release without contention: each goroutine has its own lock.

package work

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/ceiling"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/interop"
)

// Pairs returns the name of the workload with that many goroutines.
func Pairs(goroutines int) string { return fmt.Sprintf("pairs/%d", goroutines) }

// PairsOf has the numbers of goroutines that have a workload.
var PairsOf = []int{1, 16, 256, 2048}

func pairs() []Workload {
	var all []Workload
	for _, n := range PairsOf {
		w := Workload{
			Name:      Pairs(n),
			Title:     fmt.Sprintf("uncontended pairs, %d goroutines", n),
			Processes: 1,
			Contenders: []string{peer.Holdfast, peer.Redsync, peer.RedsyncTuned, peer.Redislock, peer.RedislockLinear,
				peer.Rueidislock, peer.RueidislockTuned},
			Run: func(ctx context.Context, s *Site) error { return runPairs(ctx, s, n) },
		}
		if n == 1 {
			w.Title = "uncontended pairs, 1 goroutine"
		}
		if n == 256 {
			w.Contenders = append(w.Contenders, ceiling.Name)
		}
		if n == 16 || n == 256 {
			w.Redisson = func(ctx context.Context, b interop.Bench, d time.Duration) (interop.Result, error) {
				return b.Pairs(ctx, n, d)
			}
		}
		all = append(all, w)
	}
	return all
}

func runPairs(ctx context.Context, s *Site, goroutines int) error {
	if s.Contender == ceiling.Name {
		pipelines, err := ceiling.Open(ctx, s.Addr, s.Name, goroutines)
		if err != nil {
			return err
		}
		defer pipelines.Close()
		return s.Loop(ctx, pipelines.Len(), func(i int) Task {
			return func(context.Context) (int64, error) { return pipelines.Pairs(i) }
		})
	}
	p, err := s.Open()
	if err != nil {
		return err
	}
	defer p.Close()
	return s.Loop(ctx, goroutines, func(i int) Task {
		lock := p.Lock(fmt.Sprintf("%s:%d", s.Name, i))
		return func(ctx context.Context) (int64, error) { return 1, timed(ctx, s, lock) }
	})
}

// timed does one pair and notes how long it took.
func timed(ctx context.Context, s *Site, lock peer.Lock) error {
	began := time.Now()
	err := lock.Pair(ctx, nil)
	s.Meter.Took(time.Since(began))
	return err
}
