// What processes and their server use between two moments.

package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

// rates are per second.
type rates struct {
	commands, client, server float64 // sent by clients; CPU seconds of all processes; of the server
}

// between measures while do runs, and returns do's error.
func between(ctx context.Context, server *measure.Server, all []*process, do func() error) (rates, error) {
	served, err := server.Served(ctx)
	if err != nil {
		return rates{}, err
	}
	began, used := time.Now(), sum(all).CPU
	failed := do()
	took := time.Since(began).Seconds()
	after, err := server.Served(ctx)
	if err != nil {
		return rates{}, err
	}
	did := after.Since(served)
	return rates{did.Commands / took, (sum(all).CPU - used).Seconds() / took, did.CPU.Seconds() / took}, failed
}

// settle waits until the processes are nearly idle, for a minute at the longest.
func settle(ctx context.Context, all []*process) {
	const idle = 0.2 // CPU/s of all processes
	for range 60 {
		before := sum(all).CPU
		if pause(ctx, time.Second) != nil || before > 0 && (sum(all).CPU-before).Seconds() < idle {
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
