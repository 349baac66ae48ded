// New returns nil if nothing is configured, and a nil Telemetry does nothing.

package telemetry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kind stands for the name that a primitive gives itself.
const kind = "mutex"

// of is that kind, of a name without a group.
var of = telemetry.Kind{Name: kind}

// observed is a Telemetry together with everything that it recorded.
type observed struct {
	*telemetry.Telemetry
	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
	tp     trace.TracerProvider
	mp     metric.MeterProvider
}

func observe(tb testing.TB) *observed { return grouped(tb, nil) }

// grouped is observe with groups.
func grouped(tb testing.TB, group func(string) string) *observed { return observeAt(tb, group, "") }

// observeAt is grouped for a Client of the server at addr.
func observeAt(tb testing.TB, group func(string) string, addr string) *observed {
	tb.Helper()
	o := &observed{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	o.tp = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(o.spans))
	o.mp = sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.reader))
	o.Telemetry = newTelemetry(tb, o.tp, o.mp, group, addr)
	return o
}

func newTelemetry(tb testing.TB, tp trace.TracerProvider, mp metric.MeterProvider, group func(string) string, addr string) *telemetry.Telemetry {
	tb.Helper()
	tel, err := telemetry.New(tp, mp, group, addr)
	redistest.Must(tb, err)
	return tel
}

// collect returns everything recorded so far, by name of the instrument.
func (o *observed) collect(t *testing.T) map[string]metricdata.Metrics {
	t.Helper()
	var rm metricdata.ResourceMetrics
	redistest.Must(t, o.reader.Collect(t.Context(), &rm))
	byName := make(map[string]metricdata.Metrics)
	for _, scope := range rm.ScopeMetrics {
		if scope.Scope.Name != telemetry.ScopeName || scope.Scope.Version != telemetry.Version {
			t.Errorf("scope = %s %s", scope.Scope.Name, scope.Scope.Version)
		}
		for _, m := range scope.Metrics {
			byName[m.Name] = m
		}
	}
	return byName
}

// everything calls each method once, in the order of a lock's life.
func everything(ctx context.Context, tel *telemetry.Telemetry, err error) {
	_, a := tel.Acquire(ctx, kind, "orders:42")
	of := a.Kind()
	tel.Waiters(of, 1)
	tel.Woken(of, telemetry.WokenMessage)
	tel.Waiters(of, -1)
	a.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired, Attempts: 2, Waited: time.Second, Token: 7})
	tel.Active(of, 1)
	tel.Renewed(of, telemetry.OutcomeRenewed, 1)
	tel.RenewalBatch(time.Millisecond, 1)
	tel.RenewalBacklog(1)
	tel.Reconnected()
	tel.LongHeld(tel.Kind(kind, "orders:42"))
	tel.Lost(of, telemetry.LostServer, 1)
	tel.Expired(of, 1)
	tel.Active(of, -1)
	_, r := tel.Release(ctx, of, "orders:42")
	r.End(telemetry.OutcomeError, time.Second, err)
}

// Without providers New returns nil. Without a tracer every context is left alone: a span that does nothing would
// hide the caller's own from those below. A nil *Telemetry allocates nothing,
// and neither do metrics: their meter is OpenTelemetry's own and drops everything, so that option slices
// which are made anew would show here.
func TestNothingOfItsOwnIsAllocated(t *testing.T) {
	off, err := telemetry.New(nil, nil, nil, "")
	if off != nil || err != nil {
		t.Fatalf("New(nil, nil, nil) = %v, %v, want nil, nil", off, err)
	}
	ctx, refused := t.Context(), errors.New("refused")
	for what, tel := range map[string]*telemetry.Telemetry{
		"off": off, "metrics": newTelemetry(t, nil, metricnoop.NewMeterProvider(), nil, ""),
		"by group": newTelemetry(t, nil, metricnoop.NewMeterProvider(), prefix, ""),
	} {
		acquiring, _ := tel.Acquire(ctx, kind, "orders:42")
		releasing, _ := tel.Release(ctx, of, "orders:42")
		if acquiring != ctx || releasing != ctx {
			t.Errorf("%s: another context is returned than was given", what)
		}
		redistest.Equal(t, testing.AllocsPerRun(1000, func() { everything(ctx, tel, refused) }), 0, "%v allocations per lock, want 0 (%s)", what)
	}
}

// One provider alone works. Without metrics nobody is asked for a group.
func TestOneProviderAloneWorks(t *testing.T) {
	o := observe(t)
	everything(t.Context(), newTelemetry(t, o.tp, nil, func(string) string { t.Error("asked for a group"); return "" }, ""), nil)
	if spans, metrics := len(o.spans.Ended()), len(o.collect(t)); spans != 2 || metrics != 1 { // a counter that is there before it counts
		t.Errorf("traces alone: %d spans, want 2; %d metrics", spans, metrics)
	}
	everything(t.Context(), newTelemetry(t, nil, o.mp, nil, ""), nil)
	if spans, metrics := len(o.spans.Ended()), len(o.collect(t)); spans != 2 || metrics != 12 {
		t.Errorf("metrics alone: %d spans, want no more; %d metrics, want 12", spans, metrics)
	}
}

// refusing is a meter that cannot make counters.
type refusing struct{ metricnoop.Meter }

var errRefused = errors.New("no counters here")

func (refusing) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errRefused
}

type refusingProvider struct{ metricnoop.MeterProvider }

func (refusingProvider) Meter(string, ...metric.MeterOption) metric.Meter { return refusing{} }

// If the meter refuses an instrument there are no metrics, and traces all the same.
func TestARefusedInstrumentLeavesTraces(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tel, err := telemetry.New(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)), refusingProvider{}, nil, "")
	if !errors.Is(err, errRefused) {
		t.Fatal(err)
	}
	_, span := tel.Release(t.Context(), telemetry.Kind{Name: "mutex"}, "m")
	span.End(telemetry.OutcomeReleased, time.Second, nil)
	redistest.Equal(t, len(spans.Ended()), 1, "%d spans")
}
