// These cases are about telemetry: the spans and metrics of a kind, and of locks that are held as one.

package lockertest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// hold is a lease of a lock, or of locks that are held as one.
type hold interface {
	Release(ctx context.Context) error
	Context(ctx context.Context) context.Context
	Done() <-chan struct{}
}

// told is what the telemetry is about.
type told struct {
	lock, try func(ctx context.Context, options ...holdfast.LeaseOption) (hold, error)
	rival     func() *holdfast.Lease // a hold of another process that excludes it
	nested    bool                   // it re-enters
}

func telemetry(w *stage) {
	w.tells(func(c *holdfast.Client) told {
		return told{
			lock: func(ctx context.Context, o ...holdfast.LeaseOption) (hold, error) { return w.locker(c, o...).Lock(ctx) },
			try: func(ctx context.Context, o ...holdfast.LeaseOption) (hold, error) {
				return w.locker(c, o...).TryLock(ctx)
			},
			rival:  func() *holdfast.Lease { return w.lock(w.rival(w.process())) },
			nested: w.s.Reentrant,
		}
	})
}

// Whole runs the case that there is for a MultiLock, which is no Locker. keeps is as in Kind.
func Whole(t *testing.T, r Redis, keeps []string) {
	s := Subject{Redis: r, Kind: Kind{
		Name: "multi", Telemetry: whole, Keeps: keeps,
	}}
	runCases(t, s, []testCase{{"telemetry", virtual, telemetryOfTheWhole}})
}

func telemetryOfTheWhole(w *stage) {
	w.tells(func(c *holdfast.Client) told {
		of := func(o []holdfast.LeaseOption) *holdfast.MultiLock {
			return holdfast.NewMultiLock(c.FairMutex(w.name+":b", o...), c.Mutex(w.name+":a", o...))
		}
		return told{
			lock:   func(ctx context.Context, o ...holdfast.LeaseOption) (hold, error) { return of(o).Lock(ctx) },
			try:    func(ctx context.Context, o ...holdfast.LeaseOption) (hold, error) { return of(o).TryLock(ctx) },
			rival:  func() *holdfast.Lease { return w.lock(w.process().FairMutex(w.name + ":b")) },
			nested: true,
		}
	})
}

// tells checks what a process tells that comes to every outcome.
func (w *stage) tells(of func(*holdfast.Client) told) {
	spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	it := of(w.process(
		holdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
		holdfast.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
	))
	w.everyOutcome(it)
	nested := map[bool]int{true: 1}[it.nested]
	want := slices.Concat(
		[]string{"holdfast.lock.acquire busy", "holdfast.lock.acquire timeout", "holdfast.lock.acquire cancelled"},
		slices.Repeat([]string{"holdfast.lock.acquire acquired"}, 1+nested),
		slices.Repeat([]string{"holdfast.lock.release released"}, 1+nested),
		[]string{"holdfast.lock.release repeated", "holdfast.lock.acquire acquired", "holdfast.lock.release expired"},
	)
	w.wantSpans(spans.Ended(), want)
	w.wantMetrics(reader, map[string]int64{
		"holdfast.acquire.duration busy":      1,
		"holdfast.acquire.duration timeout":   1,
		"holdfast.acquire.duration cancelled": 1,
		"holdfast.acquire.duration acquired":  2 + int64(nested),
		"holdfast.hold.duration released":     1,
		"holdfast.hold.duration expired":      1,
		"holdfast.lock.active":                0,
	})
}

// everyOutcome makes one process come to each outcome that a lock can have.
func (w *stage) everyOutcome(of told) {
	r := of.rival()
	_, err := of.try(w.patient())
	w.matches("TryLock", err, holdfast.ErrBusy)
	ctx, cancel := context.WithTimeout(context.Background(), wakeBound)
	defer cancel()
	_, err = of.lock(ctx)
	w.matches("Lock", err, context.DeadlineExceeded, holdfast.ErrBusy)
	ctx, cancel = context.WithCancel(context.Background())
	defer time.AfterFunc(wakeBound, cancel).Stop()
	_, err = of.lock(ctx)
	w.matches("Lock", err, context.Canceled)
	w.release(r)

	must := func(h hold, err error) hold {
		if err != nil {
			w.Fatalf("Lock: %v", err)
		}
		return h
	}
	l := must(of.lock(w.patient()))
	all := []hold{l}
	if of.nested {
		all = append(all, must(of.lock(l.Context(w.patient()))))
	}
	for _, h := range all {
		if err := h.Release(w.patient()); err != nil {
			w.Errorf("Release: %v", err)
		}
	}
	w.matches("Release, again", l.Release(w.patient()), holdfast.ErrReleased)
	l = must(of.lock(w.patient(), holdfast.Fixed(2*time.Second)))
	w.await("the lease", l.Done())
	w.matches("Release", l.Release(w.patient()), holdfast.ErrExpired, holdfast.ErrLost)
	w.release(of.rival()) // this clears away the lease that ran out
}

// whole is the kind that has parts, which tell of themselves.
const whole = "multi"

// ofKind reports whether the attributes are of the kind, and fails the test if they are of no part of it either.
func (w *stage) ofKind(attributes attribute.Set) bool {
	kind, there := attributes.Value("holdfast.kind")
	is := !there || kind.AsString() == w.s.Telemetry
	if !is && w.s.Telemetry != whole {
		w.Errorf("it tells of kind %q, want %q", kind.AsString(), w.s.Telemetry)
	}
	return is
}

// wantSpans fails the test unless those are the spans of the kind, and those of its parts are children of them.
func (w *stage) wantSpans(spans []sdktrace.ReadOnlySpan, want []string) {
	w.Helper()
	var got []string
	parents, parts := make(map[trace.SpanID]bool), make(map[trace.SpanID]bool)
	for _, span := range spans {
		attributes := attribute.NewSet(span.Attributes()...)
		if !w.ofKind(attributes) {
			parts[span.Parent().SpanID()] = true
			continue
		}
		parents[span.SpanContext().SpanID()] = true
		outcome, _ := attributes.Value("holdfast.outcome")
		got = append(got, span.Name()+" "+outcome.AsString())
		if name, _ := attributes.Value("holdfast.name"); name.AsString() == "" {
			w.Errorf("%s has no name", span.Name())
		}
		if token, _ := attributes.Value("holdfast.token"); w.s.Fenced && outcome.AsString() == "acquired" && token.AsInt64() == 0 {
			w.Error("a span of a grant without a token")
		}
	}
	if !slices.Equal(got, want) {
		w.Errorf("spans\n%q, want\n%q", got, want)
	}
	for parent := range parts {
		if !parents[parent] {
			w.Error("a span of a part is no child of that of the whole")
		}
	}
	if w.s.Telemetry == whole && len(parts) < len(want)-1 { // a release that is repeated asks no part
		w.Errorf("only %d spans have parts", len(parts))
	}
}

// wantMetrics fails the test unless the metrics of the kind are soon as wanted, and nobody waits: a lease that
// ends without its release is counted a moment after Done.
func (w *stage) wantMetrics(reader sdkmetric.Reader, want map[string]int64) {
	w.Helper()
	redistest.Eventually(w, patience, "the metrics tell of everything", func() error {
		got := w.metrics(reader)
		for what, n := range want {
			if has, there := got[what]; !there || has != n {
				return fmt.Errorf("%s: %d (there: %t), want %d", what, has, there, n)
			}
		}
		if n := got["holdfast.waiter.active"]; n != 0 {
			return fmt.Errorf("%d wait", n)
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
		if !w.ofKind(attributes) {
			return
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
