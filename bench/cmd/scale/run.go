// One run: who does what, and what is printed.

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
)

// run is what the command line says.
type run struct {
	Locks      int
	Lease      time.Duration
	Away       time.Duration
	Callers    int
	Goroutines int
	busy       int
	window     time.Duration
}

// every is how often a line is printed.
const every = 5 * time.Second

func (r run) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := measure.StartServer(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: time.Minute})
	defer rdb.Close()

	holder, err := launch(ctx, job{run: r, Addr: server.Addr, Name: "held"})
	if err != nil {
		return err
	}
	defer holder.end()
	var others []*process
	for i := range r.busy {
		j := job{run: r, Addr: server.Addr, Busy: true, Name: fmt.Sprint("busy", i)}
		j.Away = 0
		p, err := launch(ctx, j)
		if err != nil {
			return err
		}
		defer p.end()
		others = append(others, p)
	}
	w := newWatcher(server.Addr, r)
	var watching sync.WaitGroup
	watching.Go(func() { w.sample(ctx) })
	watching.Go(func() { w.ping(ctx) })
	defer watching.Wait()
	defer cancel()
	fmt.Println("      at    granted      lost  renewals/s  others' pairs/s  CPU holder  server  connections  PING p50    p99")
	began, last := time.Now(), moment{}
	var full time.Time
	for ctx.Err() == nil && (full.IsZero() || time.Since(full) < r.window) {
		select {
		case <-time.After(every):
		case <-ctx.Done():
		}
		now, err := r.look(ctx, rdb, holder, others)
		if err != nil {
			return err
		}
		p50, p99 := w.pings()
		took := every.Seconds()
		fmt.Printf("%8.1f %10d %9d %11.0f %16.0f %11.2f %7.2f %12d %9v %6v\n", time.Since(began).Seconds(),
			now.holder.Granted, now.holder.Lost, float64(now.renewed-last.renewed)/took, float64(now.pairs-last.pairs)/took,
			(now.holder.CPU-last.holder.CPU).Seconds()/took, (now.server-last.server)/took, now.connections,
			p50.Round(10*time.Microsecond), p99.Round(10*time.Microsecond))
		last = now
		if full.IsZero() && now.holder.Granted+now.holder.Lost >= int64(r.Locks) {
			full = time.Now()
			fmt.Printf("all are taken: %d in %.1f s\n", now.holder.Granted, time.Since(began).Seconds())
		}
	}
	cancel()
	watching.Wait()
	fmt.Printf("%d locks, lease %v, %v away, %d busy processes: lost %d; longest gap between renewals %.1f s, least time to live %.1f s (of %d locks that were looked at)\n",
		r.Locks, r.Lease, r.Away, r.busy, last.holder.Lost, w.gap.Seconds(), w.least.Seconds(), samples)
	return nil
}

// moment is how everything stands.
type moment struct {
	holder      state
	pairs       int64
	renewed     int64
	server      float64 // its CPU, in seconds
	connections int64
}

func (r run) look(ctx context.Context, rdb *redis.Client, holder *process, others []*process) (moment, error) {
	m := moment{holder: holder.state()}
	for _, p := range others {
		m.pairs += p.state().Granted
	}
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
