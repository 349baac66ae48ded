// Two goroutines of one Client take turns on a real server.

package fairlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// When two goroutines of one Client take turns, their line is empty now and then. The next
// goroutine may be handed the lock before it stands in the line. No goroutine has to wait for a
// poll. This is also true when another program listens for the releases, as Java does.
func TestTwoGoroutinesTakeTurnsWithoutAPoll(t *testing.T) {
	server, pulse := redistest.Server(t), redistest.FeelPulse(t)
	for what, listened := range map[string]bool{"alone": false, "beside a listener": true} {
		t.Run(what, func(t *testing.T) {
			rdb := server.Client(t)
			if listened {
				listener := rdb.Subscribe(t.Context(), channel)
				defer listener.Close()
				listener.Channel()
			}
			turns := &turns{rdb: rdb, pulse: pulse}
			c := holdfast.New(rdb, holdfast.WithMeterProvider(turns))
			defer c.Close()
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() { turns.take(t, c.FairMutex(name)) })
			}
			all.Wait()
			if polls := turns.polls.Load(); polls > 0 && turns.slow.Load() > 0 {
				t.Errorf("%d waits came to an end by one of %d polls", turns.slow.Load(), polls)
			}
		})
	}
}

// turns is the MeterProvider of a Client. It counts how often a timer woke a waiter, and how many
// waits took long though the process was not starved.
type turns struct {
	metricnoop.MeterProvider
	rdb   *redis.Client
	pulse *redistest.Pulse
	polls atomic.Int64
	slow  atomic.Int64
}

// take locks, works a little, and releases, again and again for three seconds.
func (n *turns) take(t *testing.T, m interface {
	Lock(context.Context) (*holdfast.Lease, error)
}) {
	for began := time.Now(); time.Since(began) < 3*time.Second; {
		asked := time.Now()
		l, err := m.Lock(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		if now := time.Now(); now.Sub(asked) > pollBound/3+n.pulse.Slack(asked, now) {
			n.slow.Add(1)
		}
		n.rdb.Get(t.Context(), "work")
		time.Sleep(300 * time.Microsecond)
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func (n *turns) Meter(string, ...metric.MeterOption) metric.Meter { return wakeUps{turns: n} }

type wakeUps struct {
	metricnoop.Meter
	turns *turns
}

func (w wakeUps) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	if name == "holdfast.wakeups" {
		return wakeUp{turns: w.turns}, nil
	}
	return metricnoop.Int64Counter{}, nil
}

type wakeUp struct {
	metricnoop.Int64Counter
	turns *turns
}

func (w wakeUp) Add(_ context.Context, _ int64, options ...metric.AddOption) {
	set := metric.NewAddConfig(options).Attributes()
	for _, label := range set.ToSlice() {
		if label.Value.AsString() == "timer" {
			w.turns.polls.Add(1)
		}
	}
}
