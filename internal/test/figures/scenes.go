// Package figures measures in real time what was slow or unfair when outsiders looked: docs/reports/found.md has the
// figures. bench/cmd/ugly prints them in one table, beside those of an older version, in whose tree it puts this
// package; so the package uses what old trees have too. Turns serves a test in virtual time.
package figures

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Turns makes each process lock the quorum, work and release it, over and over until ctx ends. It returns how often
// each had it, and the longest that each waited.
func Turns(ctx context.Context, processes []*holdfast.Quorum, work time.Duration) (grants []int, longest []time.Duration) {
	grants, longest = make([]int, len(processes)), make([]time.Duration, len(processes))
	var all sync.WaitGroup
	for i, q := range processes {
		all.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				l, err := q.Lock(ctx)
				longest[i] = max(longest[i], time.Since(began))
				if err != nil {
					return
				}
				grants[i]++
				time.Sleep(work)
				_ = l.Release(context.WithoutCancel(ctx))
			}
		})
	}
	all.Wait()
	return grants, longest
}
