// The processes of the workload held: one keeps very many locks, others keep the server busy.

package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// holder takes locks and keeps them.
type holder struct {
	Locks   int
	Lease   time.Duration
	Away    time.Duration
	Callers int
}

func (h *holder) run(ctx context.Context, addr string, now *progress) {
	rdb := redis.NewClient(&redis.Options{Addr: addr, Dialer: dialAway(h.Away)})
	defer rdb.Close()
	client := holdfast.New(rdb)
	var next atomic.Int64
	var all sync.WaitGroup
	for range h.Callers {
		all.Go(func() { h.hold(ctx, client, &next, now) })
	}
	all.Wait()
}

// hold is one caller, which takes its share of the locks and then looks at them each second.
func (h *holder) hold(ctx context.Context, client *holdfast.Client, next *atomic.Int64, now *progress) {
	var leases []*holdfast.Lease
	for i := next.Add(1) - 1; i < int64(h.Locks) && ctx.Err() == nil; i = next.Add(1) - 1 {
		l, err := client.Mutex(heldName(int(i)), holdfast.Renewed(h.Lease)).Lock(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			now.lost.Add(1)
			continue
		}
		now.granted.Add(1)
		leases = append(leases, l)
	}
	gone := make([]bool, len(leases))
	for tick := time.Tick(time.Second); ; {
		select {
		case <-tick:
		case <-ctx.Done():
			return
		}
		for i, l := range leases {
			if !gone[i] && l.Err() != nil {
				gone[i] = true
				now.lost.Add(1)
			}
		}
	}
}

func heldName(i int) string { return fmt.Sprint("held:", i) }

// busy locks and releases, with many goroutines, each with a lock of its own.
type busy struct {
	Name       string
	Goroutines int
}

func (b *busy) run(ctx context.Context, addr string, now *progress) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	client := holdfast.New(rdb)
	var all sync.WaitGroup
	for i := range b.Goroutines {
		all.Go(func() {
			m := client.Mutex(fmt.Sprintf("%s:%d", b.Name, i))
			for ctx.Err() == nil {
				l, err := m.Lock(ctx)
				if err != nil {
					continue
				}
				_ = l.Release(ctx) // a lease that was not released runs out
				now.granted.Add(1)
			}
		})
	}
	all.Wait()
}
