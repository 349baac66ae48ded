package interop

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// TestTheBenchmarksOfRedissonRun runs benchmarks for a moment: only one of them, or each of them at
// full counts.
func TestTheBenchmarksOfRedissonRun(t *testing.T) {
	machines.of(t, Newest) // skips the test without Java
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	defer cancel()
	type run struct {
		name    string
		measure func(Bench) (Result, error)
		latency bool
	}
	const moment = 2 * time.Second
	runs := []run{
		{name: "pairs", measure: func(b Bench) (Result, error) { return b.Pairs(ctx, 4, moment) }},
	}
	if long() {
		inProcesses := func(b Bench) Bench { b.Processes = true; return b }
		runs = append(runs,
			run{name: "latch", measure: func(b Bench) (Result, error) { return b.Latch(ctx, 20, 4) }, latency: true},
			run{name: "hand-off", measure: func(b Bench) (Result, error) { return b.Handoff(ctx, moment) }, latency: true},
			run{name: "lock", measure: func(b Bench) (Result, error) { return b.Lock(ctx, 20, moment) }},
			run{name: "fair lock", measure: func(b Bench) (Result, error) { return b.FairLock(ctx, 20, moment) }},
			run{name: "fair lock, processes", measure: func(b Bench) (Result, error) { return inProcesses(b).FairLock(ctx, 20, 2*moment) }},
			run{name: "semaphore", measure: func(b Bench) (Result, error) { return b.Semaphore(ctx, 3, 20, moment) }},
			run{name: "read/write", measure: func(b Bench) (Result, error) { return b.ReadWrite(ctx, 95, 20, moment) }},
		)
	}
	for _, run := range runs {
		t.Run(run.name, func(t *testing.T) {
			b := Bench{Addr: redistest.Server(t).Addr(), Clients: 2}
			r, err := run.measure(b)
			if err != nil {
				t.Fatal(err)
			}
			// Stuck is a result, not a failure. A thread of Redisson that misses the message about
			// a released read/write lock sleeps until the end of a lease.
			if r.Redisson != Newest || r.Failed > 0 {
				t.Errorf("%+v", r)
			}
			if run.latency && (r.Samples == 0 || r.P50 <= 0 || r.P99 < r.P50) || !run.latency && (r.PerSecond <= 0 || r.Fairness <= 0) {
				t.Errorf("%+v", r)
			}
			t.Logf("%+v", r)
		})
	}
}
