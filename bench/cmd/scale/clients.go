// The workload clients: a server is killed under many Clients, and comes back empty.

package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

// crowdProcesses is how many processes the Clients are in.
const crowdProcesses = 8

func clients(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("clients", flag.ExitOnError)
	n := flags.Int("clients", 1000, "how many Clients there are; one half holds, the other waits")
	lease := flags.Duration("lease", 6*time.Second, "the leases of their locks")
	down := flags.Duration("down", 3*time.Second, "how long the server is gone")
	_ = flags.Parse(args) // it exits on an error
	server, err := measure.StartServer(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	pairs := *n / 2 / crowdProcesses
	var all []*process
	for i := range crowdProcesses {
		p, err := launch(ctx, job{Addr: server.Addr, Crowd: &crowd{Process: i, Pairs: pairs, Lease: *lease}})
		if err != nil {
			return err
		}
		defer p.end()
		all = append(all, p)
	}
	held := int64(pairs * crowdProcesses)
	if err := until(ctx, time.Minute, func() bool { return sum(all).Granted == held }); err != nil {
		return fmt.Errorf("%d of %d hold: %w", sum(all).Granted, held, err)
	}
	time.Sleep(5 * time.Second) // until the others wait
	before := sum(all)
	fmt.Printf("%d Clients: %d hold, as many wait; %d connections made\n", 2*held, before.Granted, before.Dials)

	server.Kill()
	killed := time.Now()
	time.Sleep(*down)
	gone := sum(all)
	took := time.Since(killed).Seconds()
	fmt.Printf("the server is gone for %.1f s: %.2f dials a second and Client, %.2f CPU\n", took,
		float64(gone.Dials-before.Dials)/took/float64(2*held), (gone.CPU-before.CPU).Seconds()/took)

	if err := server.Start(ctx); err != nil {
		return err
	}
	back := time.Now()
	told := func() bool { s := sum(all); return s.Lost == held && s.Served == held }
	err = until(ctx, time.Minute, told)
	s := sum(all)
	fmt.Printf("%.1f s after it is back: %d of %d holders were told of their loss, %d of %d waiters hold; %d dials since, %.2f s of CPU\n",
		time.Since(back).Seconds(), s.Lost, held, s.Served, held, s.Dials-gone.Dials, (s.CPU - gone.CPU).Seconds())
	if ctx.Err() != nil {
		return err
	}
	// Who neither holds nor was notified within the minute is in the figures.
	return figures(map[string]float64{
		"dialsPerClient": float64(gone.Dials-before.Dials) / took / float64(2*held),
		"seconds":        time.Since(back).Seconds(),
		"lost":           float64(2*held - s.Lost - s.Served), // neither hold, nor were notified
	})
}

// until waits until done reports true, for limit at the longest.
func until(ctx context.Context, limit time.Duration, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for tick := time.Tick(100 * time.Millisecond); !done(); {
		select {
		case <-tick:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
