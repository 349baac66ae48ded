// The workload shares: processes with unequal numbers of goroutines want one lock all the time.

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

func shares(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("shares", flag.ExitOnError)
	crowds := flags.String("goroutines", "2,2,1,1,1,1,1,1", "how many goroutines there are in each process")
	work := flags.Duration("work", 0, "how long each holds the lock")
	window := flags.Duration("for", 5*time.Second, "how long to count")
	_ = flags.Parse(args) // it exits on an error
	server, err := measure.StartServer(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	var all []*process
	var counts []int64
	for _, text := range strings.Split(*crowds, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		p, err := launch(ctx, job{Addr: server.Addr, Sharer: &sharer{Goroutines: n, Work: *work}})
		if err != nil {
			return err
		}
		defer p.end()
		all, counts = append(all, p), append(counts, int64(n))
	}
	time.Sleep(2 * time.Second) // until all of them have come
	before := granted(all)
	time.Sleep(*window)
	after := granted(all)
	total, least, most := int64(0), 0.0, 0.0
	for i, n := range after {
		each := float64(n-before[i]) / float64(counts[i])
		total += n - before[i]
		if i == 0 || each < least {
			least = each
		}
		most = max(most, each)
		fmt.Printf("process %d: %d goroutines, %.0f grants/s each\n", i, counts[i], each/window.Seconds())
	}
	fmt.Printf("%.0f grants/s in all; a goroutine of one process has up to %.1f times as many as one of another\n",
		float64(total)/window.Seconds(), most/least)
	return nil
}

// granted returns how many grants each process has had.
func granted(all []*process) []int64 {
	var counts []int64
	for _, p := range all {
		counts = append(counts, p.state().Granted)
	}
	return counts
}

// sharer is a process of the workload.
type sharer struct {
	Goroutines int
	Work       time.Duration
}

func (s *sharer) run(ctx context.Context, addr string, now *progress) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	m := client.Mutex("shared")
	var all sync.WaitGroup
	for range s.Goroutines {
		all.Go(func() {
			for ctx.Err() == nil {
				l, err := m.Lock(ctx)
				if err != nil {
					continue
				}
				if s.Work > 0 {
					time.Sleep(s.Work)
				}
				if err := l.Release(ctx); err != nil && !errors.Is(err, holdfast.ErrLost) {
					continue
				}
				now.granted.Add(1)
			}
		})
	}
	all.Wait()
}
