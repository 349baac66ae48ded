// This case is about telemetry: the spans and metrics of the kind.

package lockertest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func telemetry(w *stage) {
	spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	told := w.process(
		holdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
		holdfast.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
	)
	w.everyOutcome(told)

	var got []string
	for _, span := range spans.Ended() {
		got = append(got, w.spanText(span))
	}
	want := []string{
		"holdfast.lock.acquire busy",
		"holdfast.lock.acquire timeout",
		"holdfast.lock.acquire cancelled",
		"holdfast.lock.acquire acquired",
		"holdfast.lock.release released",
		"holdfast.lock.release repeated",
		"holdfast.lock.acquire acquired",
		"holdfast.lock.release expired",
	}
	if !slices.Equal(got, want) {
		w.Errorf("spans\n%q, want\n%q", got, want)
	}
	w.wantMetrics(reader)
}

// everyOutcome makes one process come to each outcome that a lock can have.
func (w *stage) everyOutcome(told *holdfast.Client) {
	r := w.lock(w.rival(w.process()))
	locker := w.locker(told)
	w.busy(locker)
	ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
	defer cancel()
	_, err := locker.Lock(ctx)
	w.matches("Lock", err, context.DeadlineExceeded)
	ctx, cancel = context.WithCancel(context.Background())
	waiting := w.goLock(ctx, locker)
	w.waits(waiting, 400*time.Millisecond)
	cancel()
	_, err = w.result(waiting)
	w.matches("Lock", err, context.Canceled)
	w.release(r)

	l := w.lock(locker)
	w.release(l)
	w.matches("Release, again", l.Release(w.patient()), holdfast.ErrReleased)
	l = w.lock(w.locker(told, holdfast.Fixed(2*time.Second)))
	w.ended(l, holdfast.ErrExpired)
	w.matches("Release", l.Release(w.patient()), holdfast.ErrExpired, holdfast.ErrLost)
	w.soonFree(w.rival(w.process())) // this clears away the lease that ran out
}

// spanText returns the span's name and outcome, and checks its other attributes.
func (w *stage) spanText(span sdktrace.ReadOnlySpan) string {
	attributes := attribute.NewSet(span.Attributes()...)
	text := func(key attribute.Key) string {
		v, _ := attributes.Value(key)
		return v.String()
	}
	outcome := text("holdfast.outcome")
	if kind, name := text("holdfast.kind"), text("holdfast.name"); kind != w.s.Telemetry || name == "" {
		w.Errorf("a span of kind %q, want %q, and name %q", kind, w.s.Telemetry, name)
	}
	if token, _ := attributes.Value("holdfast.token"); w.s.Fenced && outcome == "acquired" && token.AsInt64() == 0 {
		w.Error("a span of a grant without a token")
	}
	return fmt.Sprintf("%s %s", span.Name(), outcome)
}

// wantMetrics fails the test unless the metrics show what everyOutcome did.
func (w *stage) wantMetrics(reader sdkmetric.Reader) {
	w.Helper()
	w.wantMetricsOf(reader, map[string]int64{
		"holdfast.acquire.duration busy":      1,
		"holdfast.acquire.duration timeout":   1,
		"holdfast.acquire.duration cancelled": 1,
		"holdfast.acquire.duration acquired":  2,
		"holdfast.hold.duration released":     1,
		"holdfast.hold.duration expired":      1,
		"holdfast.lock.active":                0,
		"holdfast.waiter.active":              0,
	})
}

// wantMetricsOf fails the test unless the metrics of the kind are as wanted.
func (w *stage) wantMetricsOf(reader sdkmetric.Reader, want map[string]int64) {
	w.Helper()
	// A lease that ends by itself is counted a moment after Done.
	redistest.Eventually(w, patience, "the metrics tell of everything", func() error {
		got := w.metrics(reader)
		for what, n := range want {
			if has, there := got[what]; !there || has != n {
				return fmt.Errorf("%s: %d (there: %t), want %d", what, has, there, n)
			}
		}
		return nil
	})
}

// metrics returns the counts by metric and outcome or reason.
func (w *stage) metrics(reader sdkmetric.Reader) map[string]int64 {
	w.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		w.Fatal(err)
	}
	got := make(map[string]int64)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			w.count(m, got)
		}
	}
	return got
}

// count adds to into the counts that a metric has of this kind, by outcome or reason.
func (w *stage) count(m metricdata.Metrics, into map[string]int64) {
	add := func(attributes attribute.Set, n int64) {
		kind, there := attributes.Value("holdfast.kind")
		if there && slices.Contains(w.s.members, kind.AsString()) {
			return
		}
		if there && kind.AsString() != w.s.Telemetry {
			w.Errorf("%s of kind %q", m.Name, kind.AsString())
		}
		name := m.Name
		for _, key := range []attribute.Key{"holdfast.outcome", "holdfast.reason"} {
			if v, there := attributes.Value(key); there {
				name += " " + v.AsString()
			}
		}
		into[name] += n
	}
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, int64(p.Count))
		}
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, p.Value)
		}
	}
}
