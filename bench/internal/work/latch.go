// A thousand waiters wait for a latch; the workload measures the time from the last count-down
// until all are awake.

package work

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
	"github.com/holdfast-go/holdfast/interop"
)

// Latch is the name of the workload.
const Latch = "latch"

func latches() []Workload {
	const waiters = 1000
	return []Workload{{
		Name:       Latch,
		Title:      fmt.Sprintf("latch, %d waiters of %d clients in one process: until all are awake", waiters, processes),
		Processes:  1,
		Contenders: []string{peer.Holdfast},
		Latency:    true,
		Window:     Window{Full: 4 * time.Second, Quick: 2 * time.Second},
		Redisson:   redisson(interop.Latch(processes, waiters)),
		Run: func(ctx context.Context, s *Site) error {
			// All waiters are in one process, and so have one clock, as in Redisson's harness.
			clients := make([]*holdfast.Client, processes)
			for i := range clients {
				client, closeAll := peer.NewClient(s.Addr)
				defer closeAll()
				clients[i] = client
			}
			round := 0
			return s.Loop(ctx, 1, func(int) Task {
				return func(ctx context.Context) (int64, error) {
					round++
					return 1, latchRound(ctx, s, clients, waiters, fmt.Sprintf("%s:%d", s.Name, round))
				}
			})
		},
	}}
}

// latchRound makes all waiters wait for one latch, and then counts it down.
func latchRound(ctx context.Context, s *Site, clients []*holdfast.Client, waiters int, name string) error {
	if _, err := clients[0].Latch(name).TrySetCount(ctx, 1); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var ready, awake sync.WaitGroup
	ready.Add(waiters)
	for i := range waiters {
		latch := clients[i%len(clients)].Latch(name)
		awake.Go(func() {
			ready.Done()
			if err := latch.Wait(ctx); err != nil {
				cancel(err)
			}
		})
	}
	ready.Wait()
	time.Sleep(300 * time.Millisecond) // now all waiters have subscribed
	zero := time.Now()
	if _, err := clients[0].Latch(name).CountDown(ctx); err != nil {
		cancel(err)
	}
	awake.Wait()
	s.Meter.Took(time.Since(zero))
	return context.Cause(ctx)
}
