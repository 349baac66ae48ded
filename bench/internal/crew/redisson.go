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

// Redisson is the name among the contenders, and RedissonVersion the version that is measured.
const (
	Redisson        = "redisson"
	RedissonVersion = interop.Newest
)

// ErrNoJava says that Redisson cannot be measured on this machine.
var ErrNoJava = interop.ErrNoJava

// MeasureRedisson makes Redisson do the same work for length.
func MeasureRedisson(ctx context.Context, server *measure.Server, w work.Workload, length time.Duration) (Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, length+setup+4*farewell)
	defer cancel()
	if err := server.Empty(ctx); err != nil {
		return nil, err
	}
	r, err := w.Redisson(ctx, interop.Bench{Addr: server.Addr, Version: RedissonVersion}, length)
	switch {
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		return nil, fmt.Errorf("%s: no answer in time", Hung)
	case err != nil:
		return nil, err
	case r.Stuck > 0:
		return nil, fmt.Errorf("%s: %d threads still waited at the end", Hung, r.Stuck)
	case r.Failed > 0:
		return nil, fmt.Errorf("%d calls failed", r.Failed)
	case r.Samples > 0:
		return Figures{P50: micros(r.P50), P99: micros(r.P99), Max: micros(r.Max), Samples: float64(r.Samples)}, nil
	}
	return Figures{PerSecond: r.PerSecond, Jain: r.Fairness, Starved: float64(r.Starved)}, nil
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
