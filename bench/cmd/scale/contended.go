// The workload contended: one Client waits for very many names, each of which is held.

package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

// contender is a process whose Client waits for each of the names.
type contender struct {
	Names int
	Fair  bool
}

func contendedName(i int) string { return "contended:" + strconv.Itoa(i) }

func (c *contender) run(ctx context.Context, addr string, now *progress) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	var all sync.WaitGroup
	for i := range c.Names {
		all.Go(func() {
			var lock holdfast.Locker = client.Mutex(contendedName(i))
			if c.Fair {
				lock = client.FairMutex(contendedName(i))
			}
			if l, err := lock.Lock(ctx); err == nil {
				now.granted.Add(1)
				_ = l.Release(ctx) // a lease that was not released runs out
			}
		})
	}
	all.Wait()
}

func contended(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("contended", flag.ExitOnError)
	n := flags.Int("names", 10_000, "how many names one Client waits for")
	fair := flags.Bool("fair", false, "for FairMutexes, in place of Mutexes")
	window := flags.Duration("for", 6*time.Second, "for how long it is watched")
	_ = flags.Parse(args) // it exits on an error
	server, err := measure.StartServer(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()
	if err := holdFor(ctx, rdb, *n, contendedName); err != nil {
		return err
	}
	p, err := launch(ctx, job{Addr: server.Addr, Contender: &contender{*n, *fair}})
	if err != nil {
		return err
	}
	defer p.end()
	all := []*process{p}
	settle(ctx, all)
	used, err := between(ctx, server, all, func() error { return pause(ctx, *window) })
	if err != nil {
		return err
	}
	if s := sum(all); s.Granted > 0 {
		return fmt.Errorf("%d of the names were granted, though they are held", s.Granted)
	}
	fmt.Printf("one Client waits for %d names: %.0f commands/s, %.3f CPU/s of its process and %.3f of the server's\n",
		*n, used.commands, used.client, used.server)
	return figures(map[string]float64{
		"commandsPerSecond": used.commands, "clientUsPerSecond": used.client * 1e6, "serverUsPerSecond": used.server * 1e6,
		"rssPerOne": float64(sum(all).RSS) / float64(*n),
	})
}

// holdFor makes sure that nobody gets any of n locks. The keys are as Holdfast writes them, but
// nobody renews them: so the holder costs nothing.
func holdFor(ctx context.Context, rdb *redis.Client, n int, name func(i int) string) error {
	for i := range n {
		if err := rdb.HSet(ctx, name(i), "somebody", 1).Err(); err != nil {
			return err
		}
		if err := rdb.Expire(ctx, name(i), time.Hour).Err(); err != nil {
			return err
		}
	}
	return nil
}
