// The workload waiters: very many wait for one name, and each of them gets it once.

package main

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

// waitedFor is the name that they wait for.
const waitedFor = "waited for"

// waiter is a process in which goroutines wait.
type waiter struct {
	Goroutines int
	Fair       bool
}

func (w *waiter) run(ctx context.Context, addr string, now *progress) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	lock := lockOf(client, w.Fair)
	var all sync.WaitGroup
	for range w.Goroutines {
		all.Go(func() {
			l, err := lock.Lock(ctx)
			if err != nil {
				now.lost.Add(1)
				return
			}
			_ = l.Release(ctx) // a lease that was not released runs out
			now.granted.Add(1)
		})
	}
	all.Wait()
}

func lockOf(client *holdfast.Client, fair bool) holdfast.Locker {
	if fair {
		return client.FairMutex(waitedFor)
	}
	return client.Mutex(waitedFor)
}

func waiters(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("waiters", flag.ExitOnError)
	n := flags.Int("waiters", 10_000, "how many goroutines wait, in 8 processes")
	fair := flags.Bool("fair", false, "for a FairMutex, in place of a Mutex")
	window := flags.Duration("for", 5*time.Second, "for how long they are watched while they wait")
	_ = flags.Parse(args) // it exits on an error
	server, err := measure.StartServer(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	held, err := lockOf(client, *fair).Lock(ctx)
	if err != nil {
		return err
	}
	var all []*process
	for i := range crowdProcesses {
		share := (*n + i) / crowdProcesses
		if share == 0 {
			continue
		}
		p, err := launch(ctx, job{Addr: server.Addr, Waiter: &waiter{share, *fair}})
		if err != nil {
			return err
		}
		defer p.end()
		all = append(all, p)
	}
	return watchWaiters(ctx, server, all, *n, *window, held)
}

// watchWaiters watches them while they wait, and then while each has its turn.
func watchWaiters(ctx context.Context, server *measure.Server, all []*process, n int, window time.Duration, held *holdfast.Lease) error {
	settle(ctx, all)
	idle, err := between(ctx, server, all, func() error { return pause(ctx, window) })
	if err != nil {
		return err
	}
	began := time.Now()
	busy, err := between(ctx, server, all, func() error {
		if err := held.Release(ctx); err != nil {
			return err
		}
		return until(ctx, 3*time.Minute, func() bool { s := sum(all); return s.Granted+s.Lost == int64(n) })
	})
	took := time.Since(began)
	s := sum(all)
	fmt.Printf("%d waiters: %.1f commands/s, %.3f CPU/s of theirs and %.3f of the server's; then each had its turn within %.2f s, %d failed, %.1f µs of the server's CPU for each\n",
		n, idle.commands, idle.client, idle.server, took.Seconds(), s.Lost, busy.server*took.Seconds()*1e6/float64(n))
	if err != nil {
		return fmt.Errorf("%d of %d waiters had their turn: %w", s.Granted, n, err)
	}
	return figures(map[string]float64{
		"commandsPerSecond": idle.commands, "clientUsPerSecond": idle.client * 1e6, "serverUsPerSecond": idle.server * 1e6,
		"rssPerOne": float64(s.RSS) / float64(n), "perSecond": float64(n) / took.Seconds(), "seconds": took.Seconds(),
		"serverUsPerOp": busy.server * took.Seconds() * 1e6 / float64(n), "lost": float64(s.Lost),
	})
}
