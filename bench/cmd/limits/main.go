// The limits command measures rate limiters side by side: Holdfast's, redis_rate, and Redisson's RRateLimiter.
//
//	cd bench
//	go run ./cmd/limits -for 3s -rounds 3        as the figures of docs/performance.md were taken
//	go run ./cmd/limits -for 1s -without-java
//
// It starts a Redis server of its own. Each round gives each contender its turn; the median of the rounds counts.
//
//	decisions   goroutines that ask as fast as they can, below the limit and above it
//	waits       goroutines that wait for their turn at 200 a second: how even the turns are, and whether anybody
//	            was passed by one that came later
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/interop"
)

// options are what the flags say.
type options struct {
	window     time.Duration
	rounds     int
	processes  int // Clients, each with connections of its own
	goroutines int // in all
	java       bool
}

func main() {
	var o options
	flag.DurationVar(&o.window, "for", 3*time.Second, "how long each measurement lasts")
	flag.IntVar(&o.rounds, "rounds", 3, "how often each is measured")
	flag.IntVar(&o.processes, "clients", 2, "how many Clients")
	flag.IntVar(&o.goroutines, "goroutines", 32, "how many goroutines in all")
	without := flag.Bool("without-java", false, "leave Redisson out")
	flag.Parse()
	o.java = !*without
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "limits:", err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	server, err := measure.StartServer(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	return errors.Join(o.decisions(ctx, server), o.waits(ctx, server))
}

// figures are what one measurement has found.
type figures struct {
	perSecond float64
	server    time.Duration // its processor's time for each
	fairness  float64       // Jain's index over the goroutines
	passed    int           // how many were passed by one that came later
	late      time.Duration // the median of how much later than its place in the pace each came
}

// median returns the figures of the round with the median of perSecond.
func median(all []figures) figures {
	slices.SortFunc(all, func(a, b figures) int { return int(a.perSecond - b.perSecond) })
	return all[len(all)/2]
}

const head = "%-34s %12s %14s %9s %8s %10s\n"

// decisions measures how many decisions each makes in a second.
func (o options) decisions(ctx context.Context, server *measure.Server) error {
	fmt.Printf(head, "decisions", "per second", "server for each", "Jain", "", "")
	for _, rate := range []int{1_000_000, 100} {
		for _, c := range contenders {
			var all []figures
			for range o.rounds {
				f, err := o.ask(ctx, server, c, rate)
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				all = append(all, f)
			}
			o.print(fmt.Sprintf("%s, %d/s", c.name, rate), median(all))
		}
		if err := o.redisson(ctx, server, rate, false); err != nil {
			return err
		}
	}
	return nil
}

// waits measures how those that wait come.
func (o options) waits(ctx context.Context, server *measure.Server) error {
	fmt.Printf(head, "waits", "per second", "server for each", "Jain", "passed", "late")
	for _, c := range contenders {
		if c.wait == nil {
			continue
		}
		var all []figures
		for range o.rounds {
			f, err := o.wait(ctx, server, c)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			all = append(all, f)
		}
		o.print(fmt.Sprintf("%s, %d/s", c.name, paced), median(all))
	}
	return o.redisson(ctx, server, paced, true)
}

// redisson measures Redisson, in a Java process.
func (o options) redisson(ctx context.Context, server *measure.Server, rate int, waits bool) error {
	if !o.java {
		return nil
	}
	run, err := interop.Bench{Addr: server.Addr}.Start(ctx, interop.Limiter(rate, o.processes, o.goroutines, waits))
	if err != nil {
		return err
	}
	defer run.Close()
	if _, err := run.Measure(ctx, 5*time.Second, o.window); err != nil {
		return err
	}
	before, err := server.Served(ctx)
	if err != nil {
		return err
	}
	r, err := run.Measure(ctx, 0, o.window)
	if err != nil {
		return err
	}
	after, err := server.Served(ctx)
	if err != nil {
		return err
	}
	o.print(fmt.Sprintf("redisson %s, %d/s", r.Redisson, rate), figures{
		perSecond: r.PerSecond, server: after.Since(before).CPU / time.Duration(max(r.Done, 1)), fairness: r.Fairness, passed: -1,
	})
	return nil
}

// print prints one row; what is not known is left out.
func (o options) print(name string, f figures) {
	passed, late := "", ""
	if f.passed >= 0 {
		passed = fmt.Sprint(f.passed)
	}
	if f.late != 0 {
		late = fmt.Sprint(f.late.Round(10 * time.Microsecond))
	}
	fmt.Printf(head, name, fmt.Sprintf("%.0f", f.perSecond), fmt.Sprint(f.server.Round(100*time.Nanosecond)), fmt.Sprintf("%.3f", f.fairness), passed, late)
}
