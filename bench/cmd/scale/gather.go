// The workload gather: many Clients, each with connections of its own, that do nothing, or hold a
// lock each, or wait for one each.

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

// gathering is a process with Clients in it.
type gathering struct {
	Process int
	Clients int
	Does    string // idle, holding or waiting
}

// These are what Clients may do. Each has locked and released once before it is idle.
const (
	idling  = "idle"
	holding = "holding"
	waiting = "waiting"
)

func gatherName(process, i int) string { return fmt.Sprintf("gather:%d:%d", process, i) }

func (g *gathering) run(ctx context.Context, addr string, now *progress) {
	var all sync.WaitGroup
	for i := range g.Clients {
		all.Go(func() {
			rdb := redis.NewClient(&redis.Options{Addr: addr})
			defer rdb.Close()
			client := holdfast.New(rdb)
			defer client.Close()
			name := gatherName(g.Process, i)
			if g.Does == waiting {
				// Another process holds the lock until the end.
				now.granted.Add(1)
				_, _ = client.Mutex(name).Lock(ctx)
				return
			}
			l, err := client.Mutex(name).Lock(ctx)
			if err == nil && g.Does == idling {
				err = l.Release(ctx)
			}
			if err != nil {
				now.lost.Add(1)
				return
			}
			now.granted.Add(1)
			<-ctx.Done()
		})
	}
	all.Wait()
}

func gather(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("gather", flag.ExitOnError)
	n := flags.Int("clients", 1000, "how many Clients there are, in 8 processes")
	does := flags.String("do", waiting, "what they do: idle, holding or waiting")
	window := flags.Duration("for", 6*time.Second, "for how long they are watched")
	_ = flags.Parse(args) // it exits on an error
	if *does != idling && *does != holding && *does != waiting {
		return fmt.Errorf("no Client does %q", *does)
	}
	server, err := measure.StartServer(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()
	var all []*process
	defer func() {
		for _, p := range all {
			p.end()
		}
	}()
	for i := range crowdProcesses {
		g := gathering{i, (*n + i) / crowdProcesses, *does}
		if *does == waiting {
			if err := holdFor(ctx, rdb, g.Clients, func(k int) string { return gatherName(i, k) }); err != nil {
				return err
			}
		}
		p, err := launch(ctx, job{Addr: server.Addr, Gathering: &g})
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	return watchGathering(ctx, server, rdb, all, *n, *does, *window)
}

func watchGathering(ctx context.Context, server *measure.Server, rdb *redis.Client, all []*process, n int, does string, window time.Duration) error {
	err := until(ctx, time.Minute, func() bool { s := sum(all); return s.Granted+s.Lost == int64(n) })
	if err != nil {
		return err
	}
	settle(ctx, all)
	used, err := between(ctx, server, all, func() error { return pause(ctx, window) })
	if err != nil {
		return err
	}
	info, err := rdb.InfoMap(ctx, "clients").Result()
	if err != nil {
		return err
	}
	var connections float64
	if _, err := fmt.Sscan(info["Clients"]["connected_clients"], &connections); err != nil {
		return err
	}
	s := sum(all)
	fmt.Printf("%d Clients %s: %.0f connections, %.1f commands/s, %.3f CPU/s of theirs and %.3f of the server's, %d failed\n",
		n, does, connections, used.commands, used.client, used.server, s.Lost)
	return figures(map[string]float64{
		"commandsPerSecond": used.commands, "clientUsPerSecond": used.client * 1e6, "serverUsPerSecond": used.server * 1e6,
		"connectionsPerClient": (connections - 2) / float64(n), // without the two that watch
		"rssPerOne":            float64(s.RSS) / float64(n), "lost": float64(s.Lost),
	})
}
