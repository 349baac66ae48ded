// A process of the workload clients: many Clients, half of which hold a lock each, while the other
// half wait for these.

package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

type crowd struct {
	Process int
	Pairs   int // of a Client that holds and one that waits for it
	Lease   time.Duration
}

func (c *crowd) run(ctx context.Context, addr string, now *progress) {
	dial := redis.NewDialer(&redis.Options{DialTimeout: 5 * time.Second})
	counted := func(ctx context.Context, network, addr string) (net.Conn, error) {
		now.dials.Add(1)
		return dial(ctx, network, addr)
	}
	var all sync.WaitGroup
	for i := range c.Pairs {
		all.Go(func() {
			rdb := redis.NewClient(&redis.Options{Addr: addr, Dialer: counted})
			defer rdb.Close()
			c.pair(ctx, rdb, fmt.Sprintf("crowd:%d:%d", c.Process, i), now)
		})
	}
	all.Wait()
}

// pair makes one Client hold the lock, and another wait for it.
func (c *crowd) pair(ctx context.Context, rdb *redis.Client, name string, now *progress) {
	holds, waits := holdfast.New(rdb), holdfast.New(rdb)
	l, err := holds.Mutex(name, holdfast.Renewed(c.Lease)).Lock(ctx)
	if err != nil {
		now.lost.Add(1)
		return
	}
	now.granted.Add(1)
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() {
		if _, err := waits.Mutex(name, holdfast.Renewed(c.Lease)).Lock(ctx); err == nil {
			now.served.Add(1)
		}
	})
	select {
	case <-l.Done():
		now.lost.Add(1)
	case <-ctx.Done():
	}
}
