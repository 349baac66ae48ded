// This file measures Redisson, which has a harness of its own, in Java.

package crew

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/measure"
	"github.com/holdfast-go/holdfast/bench/internal/work"
	"github.com/holdfast-go/holdfast/interop"
)

// Redisson is the name among the contenders, RedissonVersion the version that is measured, and
// RedissonSettings its settings in words.
const (
	Redisson         = "redisson"
	RedissonVersion  = interop.Newest
	RedissonSettings = "warm: has worked for 24 s before the first round; " + interop.Settings
)

// These are how long Redisson works before its first round. The Java virtual machine compiles what
// it runs; after 5 s Redisson has half of the speed that it has after 24 s.
const (
	warmJava      = 24 * time.Second
	quickWarmJava = 5 * time.Second
)

// WarmFor returns how long Redisson works before its first round.
func WarmFor(quick bool) time.Duration {
	if quick {
		return quickWarmJava
	}
	return warmJava
}

// ErrNoJava says that Redisson cannot be measured on this machine.
var ErrNoJava = interop.ErrNoJava

// Warm is Redisson at one workload, in Java processes that stay for all rounds. Only one goroutine
// may use it.
type Warm struct {
	server   *measure.Server
	workload work.Workload
	quick    bool
	run      *interop.Benching // nil before the first round, and after a failure
	stop     context.CancelFunc
}

// NewWarm returns Redisson at that workload. It starts no process yet.
func NewWarm(server *measure.Server, w work.Workload, quick bool) *Warm {
	return &Warm{server: server, workload: w, quick: quick}
}

// Measure does one round. The first round begins with a long time to warm up, and so does the first
// after a failure.
func (w *Warm) Measure(ctx context.Context, warm, window time.Duration) (Figures, error) {
	limit := setup + warm + window + 2*farewell
	if w.run == nil {
		limit += 2*warmJava + setup // Maven may have to download
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := w.measure(ctx, warm, window)
	if err != nil {
		w.Close()
	}
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return nil, fmt.Errorf("%s: no answer in time", Hung)
	case err != nil:
		return nil, err
	case r.Stuck > 0:
		return nil, fmt.Errorf("%s: %d threads still waited at the end", Hung, r.Stuck)
	case r.Failed > 0:
		return nil, fmt.Errorf("%d calls failed", r.Failed)
	case w.workload.Latency && r.Samples == 0, !w.workload.Latency && r.Done == 0:
		return nil, fmt.Errorf("%s: nothing was done in %v", Hung, window)
	case w.workload.Latency:
		return Figures{P50: micros(r.P50), P99: micros(r.P99), Max: micros(r.Max), Samples: float64(r.Samples)}, nil
	}
	return Figures{PerSecond: r.PerSecond, Jain: r.Fairness, Starved: float64(r.Starved)}, nil
}

func (w *Warm) measure(ctx context.Context, warm, window time.Duration) (interop.Result, error) {
	if w.run == nil {
		if err := w.start(ctx); err != nil {
			return interop.Result{}, err
		}
		if _, err := w.run.Measure(ctx, 0, WarmFor(w.quick)); err != nil {
			return interop.Result{}, err
		}
	}
	if err := w.server.Empty(ctx); err != nil {
		return interop.Result{}, err
	}
	return w.run.Measure(ctx, warm, window)
}

// start starts the processes, which outlive the round.
func (w *Warm) start(ctx context.Context) error {
	all, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, stop)()
	run, err := interop.Bench{Addr: w.server.Addr, Version: RedissonVersion}.Start(all, *w.workload.Redisson)
	if err != nil {
		stop()
		return err
	}
	w.run, w.stop = run, stop
	return nil
}

// Close ends the processes.
func (w *Warm) Close() {
	if w.run != nil {
		w.run.Close()
		w.stop()
		w.run = nil
	}
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
