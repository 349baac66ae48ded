// A pair is an acquire and a release without contention: each goroutine has its own lock.

package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
			Name:       Pairs(n),
			Title:      fmt.Sprintf("uncontended pairs, %d goroutines", n),
			Processes:  1,
			Contenders: slices.Concat([]string{peer.Holdfast}, peer.Without(peer.RedislockExponential)),
			Redisson:   redisson(interop.Pairs(n)),
			Run:        func(ctx context.Context, s *Site) error { return runPairs(ctx, s, n) },
		}
		if n == 1 {
			w.Title = "uncontended pairs, 1 goroutine"
			w.Window.Rounds = 11 // they vary most
		}
		if n == ceiling.Callers {
			w.Contenders = append(w.Contenders, ceiling.Name, ceiling.AsSent)
		}
		all = append(all, w)
	}
	return all
}

func runPairs(ctx context.Context, s *Site, goroutines int) error {
	switch s.Contender {
	case ceiling.Name:
		return runCeiling(ctx, s, 1)
	case ceiling.AsSent:
		return runCeiling(ctx, s, goroutines)
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

// runCeiling sends the scripts of that many goroutines as fast as the server takes them.
func runCeiling(ctx context.Context, s *Site, callers int) error {
	pipelines, err := ceiling.Open(ctx, s.Addr, s.Name, callers)
	if err != nil {
		return err
	}
	defer pipelines.Close()
	err = s.Loop(ctx, pipelines.Len(), func(i int) Task {
		return func(context.Context) (int64, error) { return pipelines.Pairs(i) }
	})
	return errors.Join(err, pipelines.Check(context.WithoutCancel(ctx)))
}

// timed does one pair and notes how long it took.
func timed(ctx context.Context, s *Site, lock peer.Lock) error {
	began := time.Now()
	err := lock.Pair(ctx, nil)
	s.Meter.Took(time.Since(began))
	return err
}
