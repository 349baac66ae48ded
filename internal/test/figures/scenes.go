// Package figures measures in real time what was slow or unfair when outsiders looked: docs/reports/found.md has the
// figures. bench/cmd/ugly prints them in one table, beside those of an older version, in whose tree it puts this
// package; so the package uses what old trees have too. Its scenes also serve tests in virtual time.
package figures

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
)

// News is what leaves all waiters of a process nothing to wait for.
type News struct {
	Prepare func(ctx context.Context, c *holdfast.Client) error
	Wait    func(ctx context.Context, c *holdfast.Client) error
	Tell    func(ctx context.Context, c *holdfast.Client) error
	Want    error // of each Wait
}

// Waiters is how many wait for bad news.
const Waiters = 500

// BadNews returns the kinds of bad news, by what has happened.
func BadNews() map[string]News {
	return map[string]News{
		"a barrier is reset": {
			Prepare: func(context.Context, *holdfast.Client) error { return nil },
			Wait: func(ctx context.Context, c *holdfast.Client) error {
				return second(c.Barrier("b", Waiters+1).Await(ctx))
			},
			Tell: func(ctx context.Context, c *holdfast.Client) error {
				return second(c.Barrier("b", Waiters+1).Reset(ctx))
			},
			Want: holdfast.ErrBroken,
		},
		"a latch is deleted": {
			Prepare: func(ctx context.Context, c *holdfast.Client) error { return second(c.Latch("l").TrySetCount(ctx, 1)) },
			Wait:    func(ctx context.Context, c *holdfast.Client) error { return c.Latch("l").Wait(ctx) },
			Tell:    func(ctx context.Context, c *holdfast.Client) error { return second(c.Latch("l").Delete(ctx)) },
			Want:    holdfast.ErrDeleted,
		},
		"permits are made fewer": {
			Prepare: func(ctx context.Context, c *holdfast.Client) error {
				p := c.PermitSemaphore("p")
				if _, err := p.TrySetPermits(ctx, 3); err != nil {
					return err
				}
				return second(p.Acquire(ctx, 1))
			},
			Wait: func(ctx context.Context, c *holdfast.Client) error {
				return second(c.PermitSemaphore("p").Acquire(ctx, 3))
			},
			Tell: func(ctx context.Context, c *holdfast.Client) error { return c.PermitSemaphore("p").AddPermits(ctx, -1) },
			Want: holdfast.ErrNoPermits,
		},
	}
}

// second returns the error of a call with two results.
func second[T any](_ T, err error) error { return err }

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
