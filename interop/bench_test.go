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
	redistest.LongRun(t)
	machines.of(t, Newest) // skips the test without Java
	ctx, cancel := context.WithTimeout(context.Background(), 5*patience)
	defer cancel()
	type run struct {
		name    string
		load    Load
		latency bool
	}
	const moment = 2 * time.Second
	runs := []run{
		{name: "pairs", load: Pairs(4)},
	}
	if long() {
		runs = append(runs,
			run{name: "latch", load: Latch(2, 20), latency: true},
			run{name: "hand-off", load: HandOff(), latency: true},
			run{name: "lock", load: Lock(2, 20)},
			run{name: "fair lock", load: FairLock(2, 20)},
			run{name: "semaphore", load: Semaphore(3, 2, 20)},
			run{name: "read/write", load: ReadWrite(95, 2, 20)},
		)
	}
	for _, run := range runs {
		t.Run(run.name, func(t *testing.T) {
			b, err := Bench{Addr: redistest.Server(t).Addr()}.Start(ctx, run.load)
			redistest.Must(t, err)
			defer b.Close()
			redistest.Must(t, redistest.Err(b.Measure(ctx, 0, moment))) // one after the other, in the same processes
			r, err := b.Measure(ctx, moment/4, moment)
			redistest.Must(t, err)
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
