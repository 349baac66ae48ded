// The workload held: one Client keeps very many locks.

package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

// heldRun is what the command line says of the workload held.
type heldRun struct {
	holder
	busy   busy
	others int
	window time.Duration
}

// every is how often a line is printed.
const every = 5 * time.Second

func held(ctx context.Context, args []string) error {
	var r heldRun
	flags := flag.NewFlagSet("held", flag.ExitOnError)
	flags.IntVar(&r.Locks, "locks", 1_000_000, "how many locks the holder keeps")
	flags.DurationVar(&r.Lease, "lease", 30*time.Second, "their lease")
	flags.DurationVar(&r.Away, "away", 0, "how long each request of the holder takes to the server")
	flags.IntVar(&r.Callers, "callers", 256, "how many goroutines take the locks")
	flags.IntVar(&r.others, "busy", 0, "how many other processes lock and release")
	flags.IntVar(&r.busy.Goroutines, "goroutines", 256, "how many goroutines each of them has")
	flags.DurationVar(&r.window, "for", 40*time.Second, "how long the locks are held once all are taken")
	_ = flags.Parse(args) // it exits on an error
	return r.run(ctx)
}

func (r *heldRun) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := measure.StartServer(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: time.Minute})
	defer rdb.Close()
	keeper, err := launch(ctx, job{Addr: server.Addr, Holder: &r.holder})
	if err != nil {
		return err
	}
	defer keeper.end()
	var others []*process
	for i := range r.others {
		b := busy{Name: fmt.Sprint("busy", i), Goroutines: r.busy.Goroutines}
		p, err := launch(ctx, job{Addr: server.Addr, Busy: &b})
		if err != nil {
			return err
		}
		defer p.end()
		others = append(others, p)
	}
	w := newWatcher(server.Addr, r.holder)
	var watching sync.WaitGroup
	watching.Go(func() { w.sample(ctx) })
	watching.Go(func() { w.ping(ctx) })
	defer watching.Wait()
	defer cancel()
	f, err := r.follow(ctx, rdb, keeper, others, w)
	if err != nil {
		return err
	}
	cancel()
	watching.Wait()
	fmt.Printf("%d locks, lease %v, %v away, %d busy processes: lost %d; longest gap between renewals %.1f s, least time to live %.1f s (of %d locks that were looked at)\n",
		r.Locks, r.Lease, r.Away, r.others, int64(f["lost"]), w.gap.Seconds(), w.least.Seconds(), samples)
	f["longestGap"], f["leastTTL"] = w.gap.Seconds()/r.Lease.Seconds(), w.least.Seconds()/r.Lease.Seconds()
	return figures(f)
}

// follow prints how it goes, until the locks have been held for long enough. It returns the figures
// of the time after all were taken, and how many were lost in all.
func (r *heldRun) follow(ctx context.Context, rdb *redis.Client, keeper *process, others []*process, w *watcher) (f map[string]float64, err error) {
	fmt.Println("      at    granted      lost  renewals/s  others' pairs/s  CPU holder  server  connections  PING p50    p99")
	began, last := time.Now(), moment{}
	f = make(map[string]float64)
	var full time.Time
	var first moment
	for ctx.Err() == nil && (full.IsZero() || time.Since(full) < r.window) {
		select {
		case <-time.After(every):
		case <-ctx.Done():
		}
		now, err := look(ctx, rdb, keeper, others)
		if err != nil {
			return nil, err
		}
		p50, p99 := w.pings()
		took := every.Seconds()
		fmt.Printf("%8.1f %10d %9d %11.0f %16.0f %11.2f %7.2f %12d %9v %6v\n", time.Since(began).Seconds(),
			now.holder.Granted, now.holder.Lost, float64(now.renewed-last.renewed)/took, float64(now.pairs-last.pairs)/took,
			(now.holder.CPU-last.holder.CPU).Seconds()/took, (now.server-last.server)/took, now.connections,
			p50.Round(10*time.Microsecond), p99.Round(10*time.Microsecond))
		last = now
		f["p99us"] = max(f["p99us"], float64(p99.Microseconds()))
		if full.IsZero() && now.holder.Granted+now.holder.Lost >= int64(r.Locks) {
			full, first = time.Now(), now
			f["seconds"] = time.Since(began).Seconds()
			fmt.Printf("all are taken: %d in %.1f s\n", now.holder.Granted, time.Since(began).Seconds())
		}
	}
	held := time.Since(full).Seconds()
	f["lost"] = float64(last.holder.Lost)
	f["perSecond"] = float64(last.renewed-first.renewed) / held
	f["clientUsPerSecond"] = (last.holder.CPU - first.holder.CPU).Seconds() * 1e6 / held
	f["serverUsPerSecond"] = (last.server - first.server) * 1e6 / held
	return f, ctx.Err()
}

// moment is how everything stands.
type moment struct {
	holder      state
	pairs       int64
	renewed     int64
	server      float64 // its CPU, in seconds
	connections int64
}

func look(ctx context.Context, rdb *redis.Client, keeper *process, others []*process) (moment, error) {
	m := moment{holder: keeper.state(), pairs: sum(others).Granted}
	for _, section := range []string{"commandstats", "stats", "cpu"} {
		text, err := rdb.Info(ctx, section).Result()
		if err != nil {
			return m, err
		}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch name {
			case "cmdstat_hexists": // the busy processes' scripts do not call it
				calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
				m.renewed, _ = strconv.ParseInt(calls, 10, 64)
			case "total_connections_received":
				m.connections, _ = strconv.ParseInt(value, 10, 64)
			case "used_cpu_user", "used_cpu_sys":
				seconds, _ := strconv.ParseFloat(value, 64)
				m.server += seconds
			}
		}
	}
	return m, nil
}
