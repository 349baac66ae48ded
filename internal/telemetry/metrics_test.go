// The metrics have the right names, units, attributes and values, and none of them contains the
// name of a lock.

package telemetry_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// sums returns the points of a counter as a map from attribute set to value.
func sums(t *testing.T, m metricdata.Metrics) map[attribute.Distinct]int64 {
	t.Helper()
	sum, ok := m.Data.(metricdata.Sum[int64])
	if !ok {
		t.Fatalf("%s is a %T, not a sum", m.Name, m.Data)
	}
	points := make(map[attribute.Distinct]int64)
	for _, p := range sum.DataPoints {
		points[p.Attributes.Equivalent()] = p.Value
	}
	return points
}

func set(kvs ...string) attribute.Distinct {
	attrs := make([]attribute.KeyValue, 0, len(kvs)/2)
	for pair := range slices.Chunk(kvs, 2) {
		attrs = append(attrs, attribute.String(pair[0], pair[1]))
	}
	s := attribute.NewSet(attrs...)
	return s.Equivalent()
}

func histogram(t *testing.T, m metricdata.Metrics) metricdata.Histogram[float64] {
	t.Helper()
	h, ok := m.Data.(metricdata.Histogram[float64])
	if !ok {
		t.Fatalf("%s is a %T, not a histogram of floats", m.Name, m.Data)
	}
	return h
}

func TestEveryMetricHasItsNameAndUnit(t *testing.T) {
	o := observe(t)
	everything(t.Context(), o.Telemetry, nil)
	want := map[string]string{
		"holdfast.acquire.duration":   "s",
		"holdfast.hold.duration":      "s",
		"holdfast.renewal.duration":   "s",
		"holdfast.renewal.batch.size": "{renewal}",
		"holdfast.renewal.backlog":    "{renewal}",
		"holdfast.lock.active":        "{lock}",
		"holdfast.waiter.active":      "{waiter}",
		"holdfast.renewals":           "{renewal}",
		"holdfast.lost":               "{lock}",
		"holdfast.wakeups":            "{wakeup}",
		"holdfast.pubsub.reconnects":  "{reconnect}",
		"holdfast.lock.long_held":     "{lock}",
	}
	got := o.collect(t)
	for name, unit := range want {
		if m, ok := got[name]; !ok || m.Unit != unit || m.Description == "" {
			t.Errorf("%s: recorded %v, unit %q, want %q, description %q", name, ok, m.Unit, unit, m.Description)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d metrics, want %d", len(got), len(want))
	}
}

func TestAcquireDuration(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		o := observe(t)
		for _, end := range []telemetry.Acquired{
			{Outcome: telemetry.OutcomeAcquired},
			{Outcome: telemetry.OutcomeAcquired},
			{Outcome: telemetry.OutcomeAcquired, Reentrant: true},
			{Outcome: telemetry.OutcomeTimeout, Err: errs.Busy},
			{Outcome: telemetry.OutcomeError, Err: errs.OutOfMemory},
		} {
			_, a := o.Acquire(t.Context(), kind, "orders:42")
			time.Sleep(300 * time.Millisecond)
			a.End(end)
		}

		point := func(count uint64, kvs ...attribute.KeyValue) metricdata.HistogramDataPoint[float64] {
			bounds := []float64{
				50e-6, 100e-6, 250e-6, 500e-6,
				1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3,
				1, 2.5, 5, 10, 30, 60,
			}
			buckets := make([]uint64, len(bounds)+1)
			buckets[slices.Index(bounds, 0.5)] = count
			return metricdata.HistogramDataPoint[float64]{
				Attributes: attribute.NewSet(append(kvs, attribute.String("holdfast.kind", kind))...),
				Count:      count, Bounds: bounds, BucketCounts: buckets,
			}
		}
		outcome := func(s string) attribute.KeyValue { return attribute.String("holdfast.outcome", s) }
		metricdatatest.AssertEqual(t, metricdata.Histogram[float64]{
			Temporality: metricdata.CumulativeTemporality,
			DataPoints: []metricdata.HistogramDataPoint[float64]{
				point(2, outcome("acquired")),
				point(1, outcome("acquired"), attribute.Bool("holdfast.reentrant", true)),
				point(1, outcome("timeout")),
				point(1, outcome("error"), attribute.String("error.type", "out_of_memory")),
			},
		}, histogram(t, o.collect(t)["holdfast.acquire.duration"]),
			metricdatatest.IgnoreTimestamp(), metricdatatest.IgnoreValue(), metricdatatest.IgnoreExemplars())
	})
}

// A cancelled wait is recorded although its ctx is already over.
func TestACancelledWaitIsRecorded(t *testing.T) {
	o := observe(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, a := o.Acquire(ctx, kind, "orders:42")
	cancel()
	a.End(telemetry.Acquired{Outcome: telemetry.OutcomeCancelled, Err: ctx.Err()})
	if h := histogram(t, o.collect(t)["holdfast.acquire.duration"]); len(h.DataPoints) != 1 {
		t.Errorf("%d points, want 1", len(h.DataPoints))
	}
	o.only(t)
}

func TestTheSpanIsTheExemplar(t *testing.T) {
	o := observe(t)
	_, a := o.Acquire(t.Context(), kind, "orders:42")
	a.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired})

	id := o.only(t).SpanContext().SpanID()
	exemplars := histogram(t, o.collect(t)["holdfast.acquire.duration"]).DataPoints[0].Exemplars
	if len(exemplars) != 1 || string(exemplars[0].SpanID) != string(id[:]) {
		t.Errorf("exemplars %v, want the span %s", exemplars, id)
	}
}

func TestHoldDuration(t *testing.T) {
	o := observe(t)
	_, r := o.Release(t.Context(), of, "orders:42")
	r.End(telemetry.OutcomeReleased, 2*time.Second, nil)
	_, r = o.Release(t.Context(), of, "orders:42")
	r.End(telemetry.OutcomeLost, 3*time.Second, errs.Lost)

	got := make(map[attribute.Distinct]float64)
	for _, p := range histogram(t, o.collect(t)["holdfast.hold.duration"]).DataPoints {
		got[p.Attributes.Equivalent()] = p.Sum
	}
	released := set("holdfast.kind", kind, "holdfast.outcome", "released")
	lost := set("holdfast.kind", kind, "holdfast.outcome", "lost", "error.type", "lost")
	if len(got) != 2 || got[released] != 2 || got[lost] != 3 {
		t.Errorf("holds by attributes: %v", got)
	}
}

func TestLevelsGoUpAndDown(t *testing.T) {
	o := observe(t)
	o.Active(telemetry.Kind{Name: "mutex"}, 1)
	o.Active(telemetry.Kind{Name: "mutex"}, 1)
	o.Active(telemetry.Kind{Name: "mutex"}, -1)
	o.Active(telemetry.Kind{Name: "fair"}, 1)
	o.Waiting(telemetry.Kind{Name: "mutex"}, 5)
	o.Waiting(telemetry.Kind{Name: "mutex"}, -5)

	got := o.collect(t)
	active := sums(t, got["holdfast.lock.active"])
	if active[set("holdfast.kind", "mutex")] != 1 || active[set("holdfast.kind", "fair")] != 1 {
		t.Errorf("holdfast.lock.active: %v", active)
	}
	if waiting := sums(t, got["holdfast.waiter.active"]); waiting[set("holdfast.kind", "mutex")] != 0 {
		t.Errorf("holdfast.waiter.active: %v", waiting)
	}
	if got["holdfast.lock.active"].Data.(metricdata.Sum[int64]).IsMonotonic {
		t.Error("holdfast.lock.active is monotonic")
	}
}

func TestCountersByReasonAndOutcome(t *testing.T) {
	o := observe(t)
	o.Renewed(of, telemetry.OutcomeRenewed, 40)
	o.Renewed(of, telemetry.OutcomeRenewed, 2)
	o.Renewed(of, telemetry.OutcomeGone, 1)
	o.Renewed(of, telemetry.OutcomeFailed, 0)
	o.Lost(of, telemetry.LostServer, 1)
	o.Lost(of, telemetry.LostDeadline, 1)
	o.Lost(of, telemetry.LostDeadline, 1)
	o.Woken(of, telemetry.WokenTimer)
	o.Woken(telemetry.Kind{Name: "fair"}, telemetry.WokenTurn)
	o.Reconnected()
	o.Reconnected()
	o.LongHeld(telemetry.Kind{Name: "rwlock"})

	got := o.collect(t)
	for name, want := range map[string]map[attribute.Distinct]int64{
		"holdfast.renewals": {
			set("holdfast.kind", kind, "holdfast.outcome", "renewed"): 42,
			set("holdfast.kind", kind, "holdfast.outcome", "gone"):    1,
		},
		"holdfast.lost": {
			set("holdfast.kind", kind, "holdfast.reason", "server"):   1,
			set("holdfast.kind", kind, "holdfast.reason", "deadline"): 2,
		},
		"holdfast.wakeups": {
			set("holdfast.kind", kind, "holdfast.reason", "timer"):  1,
			set("holdfast.kind", "fair", "holdfast.reason", "turn"): 1,
		},
		"holdfast.pubsub.reconnects": {set(): 2},
		"holdfast.lock.long_held":    {set("holdfast.kind", "rwlock"): 1},
	} {
		points := sums(t, got[name])
		if len(points) != len(want) {
			t.Errorf("%s: %d points, want %d", name, len(points), len(want))
		}
		for attrs, value := range want {
			if points[attrs] != value {
				t.Errorf("%s: %d, want %d", name, points[attrs], value)
			}
		}
	}
}

func TestRenewalBatch(t *testing.T) {
	o := observe(t)
	o.RenewalBatch(4*time.Millisecond, 250)
	o.RenewalBacklog(7)
	got := o.collect(t)
	if p := histogram(t, got["holdfast.renewal.duration"]).DataPoints[0]; p.Sum != 0.004 || p.Attributes.Len() != 0 {
		t.Errorf("holdfast.renewal.duration: %v %v", p.Sum, p.Attributes)
	}
	size, ok := got["holdfast.renewal.batch.size"].Data.(metricdata.Histogram[int64])
	if !ok || size.DataPoints[0].Sum != 250 {
		t.Errorf("holdfast.renewal.batch.size: %v", got["holdfast.renewal.batch.size"].Data)
	}
	backlog, ok := got["holdfast.renewal.backlog"].Data.(metricdata.Histogram[int64])
	if !ok || backlog.DataPoints[0].Sum != 7 {
		t.Errorf("holdfast.renewal.backlog: %v", got["holdfast.renewal.backlog"].Data)
	}
}

// Metrics carry only a few allowed keys. The name of a lock is not among them.
func TestMetricsCarryOnlyBoundedAttributes(t *testing.T) {
	o := observe(t)
	everything(t.Context(), o.Telemetry, errors.New("dial tcp 10.0.0.7:6379: refused"))
	allowed := []string{"holdfast.kind", "holdfast.outcome", "holdfast.reason", "holdfast.reentrant", "error.type"}
	for name, m := range o.collect(t) {
		for _, s := range attributesOf(t, m) {
			for _, kv := range s.ToSlice() {
				if !slices.Contains(allowed, string(kv.Key)) {
					t.Errorf("%s carries %s", name, kv.Key)
				}
			}
		}
	}
}

// Goroutines share attribute sets, and new sets appear while others are in use.
func TestManyGoroutines(t *testing.T) {
	o := observe(t)
	const goroutines, rounds = 8, 200
	kinds := []string{"mutex", "fair", "read", "write", "semaphore"}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				o.Active(telemetry.Kind{Name: kinds[(g+i)%len(kinds)]}, 1)
				_, a := o.Acquire(t.Context(), kinds[i%len(kinds)], "orders:42")
				a.End(telemetry.Acquired{Outcome: telemetry.Outcome(1 + i%5)})
			}
		})
	}
	wg.Wait()

	var active int64
	got := o.collect(t)
	for _, n := range sums(t, got["holdfast.lock.active"]) {
		active += n
	}
	var acquired uint64
	for _, p := range histogram(t, got["holdfast.acquire.duration"]).DataPoints {
		acquired += p.Count
	}
	if active != goroutines*rounds || acquired != goroutines*rounds {
		t.Errorf("counted %d active and %d acquired, want %d each", active, acquired, goroutines*rounds)
	}
}

// An alarm on the first loss needs a series that starts at 0.
func TestCountersAreThereBeforeTheyCount(t *testing.T) {
	o := observe(t)
	o.Active(of, 1)
	o.Waiting(of, 1)
	got := o.collect(t)
	for counter, want := range map[string][]attribute.Distinct{
		"holdfast.lost": {
			set("holdfast.kind", kind, "holdfast.reason", telemetry.LostServer),
			set("holdfast.kind", kind, "holdfast.reason", telemetry.LostDeadline),
			set("holdfast.kind", kind, "holdfast.reason", telemetry.LostClosed),
			set("holdfast.kind", kind, "holdfast.reason", telemetry.LostMaxHold),
		},
		"holdfast.renewals": {
			set("holdfast.kind", kind, "holdfast.outcome", "renewed"),
			set("holdfast.kind", kind, "holdfast.outcome", "gone"),
			set("holdfast.kind", kind, "holdfast.outcome", "failed"),
		},
		"holdfast.wakeups": {
			set("holdfast.kind", kind, "holdfast.reason", telemetry.WokenMessage),
			set("holdfast.kind", kind, "holdfast.reason", telemetry.WokenTimer),
			set("holdfast.kind", kind, "holdfast.reason", telemetry.WokenTurn),
		},
		"holdfast.pubsub.reconnects": {set()},
	} {
		points := sums(t, got[counter])
		for _, labels := range want {
			if n, there := points[labels]; n != 0 || !there {
				t.Errorf("%s %v: %d, there: %v; want 0", counter, labels, n, there)
			}
		}
	}
}
