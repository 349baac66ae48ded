// This scene is about work that is divided among processes.

package scenes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/shards"
)

// floor is who works on which shard.
type floor struct {
	mu    sync.Mutex // guards the fields below
	on    map[int]string
	count map[string]int
	twice bool // two have worked on one shard at the same time
}

// work is that of one member, until its context ends.
func (f *floor) work(who string) func(context.Context, *shards.Shard) error {
	return func(ctx context.Context, shard *shards.Shard) error {
		f.mu.Lock()
		f.twice = f.twice || f.on[shard.Number()] != ""
		f.on[shard.Number()] = who
		f.count[who]++
		f.mu.Unlock()
		<-ctx.Done()
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.on, shard.Number())
		f.count[who]--
		return nil
	}
}

// has waits until each member works on as many shards as it is to have.
func (f *floor) has(ctx context.Context, a, b, c int) error {
	for {
		f.mu.Lock()
		there := f.count["A"] == a && f.count["B"] == b && f.count["C"] == c
		f.mu.Unlock()
		if there {
			return nil
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

func dividedWork(ctx context.Context, s *stage) error {
	const size, lease = 6, time.Second
	s.note("Six shards of the work on orders. A, B and C come one after the other and share them evenly: who has too many")
	s.note("is asked, ends the work, and only then gives the shard up. Then C dies.")
	c := s.client(s.Redis)
	defer c.Close()
	f := &floor{on: make(map[int]string), count: make(map[string]int)}
	ctx, leave := context.WithCancel(ctx)
	over := make(chan error, 3)
	join := func(who string, client *holdfast.Client) {
		go func() {
			err := client.Shards(s.name("orders"), size, shards.Identity(who), shards.Lease(lease)).Run(ctx, f.work(who))
			if !errors.Is(err, context.Canceled) && !errors.Is(err, holdfast.ErrClosed) {
				over <- fmt.Errorf("%s: %w", who, err)
				return
			}
			over <- nil
		}()
	}
	join("A", s.A)
	err := f.has(ctx, 6, 0, 0)
	s.says("A", "has all six")
	join("B", s.B)
	err = errors.Join(err, f.has(ctx, 3, 3, 0))
	s.says("B", "has three of them")
	join("C", c)
	err = errors.Join(err, f.has(ctx, 2, 2, 2))
	s.says("C", "has two, and so has each")

	died := time.Now()
	err = errors.Join(err, c.Close())
	s.says("C", "is gone")
	err = errors.Join(err, f.has(ctx, 3, 3, 0))
	s.says("A", "has three again, and B too, %s after C has died", ms(time.Since(died)))
	s.check("nobody began the work on a shard before the one that had it had stopped", !f.twice)
	leave()
	return errors.Join(err, all(over, 3))
}
