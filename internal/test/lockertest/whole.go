// This case is about locks that are held as one: the telemetry of the whole, besides the telemetry
// of its members.

package lockertest

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/multilock"
)

// Whole runs the cases that exist for a MultiLock, which is no Locker. keeps is as in Kind.
func Whole(t *testing.T, r Redis, keeps []string) {
	s := Subject{Redis: r, Kind: Kind{
		Name: "multi", Telemetry: "multi", Keeps: keeps, members: []string{"mutex", "fairmutex"},
	}}
	s.Slots <- struct{}{}
	defer func() { <-s.Slots }()
	t.Run("telemetry", func(t *testing.T) { s.play(t, testCase{"telemetry", nil, toldAsOne}) })
}

func toldAsOne(w *stage) {
	spans, reader := tracetest.NewSpanRecorder(), sdkmetric.NewManualReader()
	told := w.process(
		holdfast.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))),
		holdfast.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
	)
	w.everyOutcomeOfMany(told)

	var got []string
	wholes := make(map[trace.SpanID]bool)
	for _, span := range spans.Ended() {
		if kindOf(span) == w.s.Telemetry {
			got = append(got, w.spanText(span))
			wholes[span.SpanContext().SpanID()] = true
		}
	}
	want := []string{
		"holdfast.lock.acquire busy",
		"holdfast.lock.acquire timeout",
		"holdfast.lock.acquire cancelled",
		"holdfast.lock.acquire acquired",
		"holdfast.lock.acquire acquired", // re-entry
		"holdfast.lock.release released",
		"holdfast.lock.release released",
		"holdfast.lock.release repeated",
		"holdfast.lock.acquire acquired",
		"holdfast.lock.release expired",
	}
	if !slices.Equal(got, want) {
		w.Errorf("spans\n%q, want\n%q", got, want)
	}
	members := 0
	for _, span := range spans.Ended() {
		if kind := kindOf(span); kind != w.s.Telemetry {
			if members++; !wholes[span.Parent().SpanID()] {
				w.Errorf("%s of a %s is no child of that of the whole", span.Name(), kind)
			}
		}
	}
	if members < 2*len(want)-3 {
		w.Errorf("only %d spans of members", members)
	}
	w.wantMetricsOf(reader, map[string]int64{
		"holdfast.acquire.duration busy":      1,
		"holdfast.acquire.duration timeout":   1,
		"holdfast.acquire.duration cancelled": 1,
		"holdfast.acquire.duration acquired":  3,
		"holdfast.hold.duration released":     1,
		"holdfast.hold.duration expired":      1,
		"holdfast.lock.active":                0,
	})
}

func kindOf(span sdktrace.ReadOnlySpan) string {
	attributes := attribute.NewSet(span.Attributes()...)
	v, _ := attributes.Value("holdfast.kind")
	return v.AsString()
}

// everyOutcomeOfMany is everyOutcome for two locks at once. Another process holds the second lock.
func (w *stage) everyOutcomeOfMany(told *holdfast.Client) {
	locks := func(options ...holdfast.LeaseOption) *multilock.MultiLock {
		return holdfast.NewMultiLock(told.FairMutex(w.name+":b", options...), told.Mutex(w.name+":a", options...))
	}
	r := w.lock(w.process().FairMutex(w.name + ":b"))
	_, err := locks().TryLock(w.patient())
	w.matches("TryLock", err, holdfast.ErrBusy)
	ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
	defer cancel()
	_, err = locks().Lock(ctx)
	w.matches("Lock", err, context.DeadlineExceeded, holdfast.ErrBusy)
	ctx, cancel = context.WithCancel(context.Background())
	stop := time.AfterFunc(400*time.Millisecond, cancel)
	defer stop.Stop()
	_, err = locks().Lock(ctx)
	w.matches("Lock", err, context.Canceled)
	w.release(r)

	l := w.lockAll(locks(), w.patient())
	inner := w.lockAll(locks(), l.Context(w.patient()))
	for what, release := range map[string]error{"inner": inner.Release(w.patient()), "outer": l.Release(w.patient())} {
		if release != nil {
			w.Errorf("Release, %s: %v", what, release)
		}
	}
	w.matches("Release, again", l.Release(w.patient()), holdfast.ErrReleased)
	l = w.lockAll(locks(holdfast.Fixed(2*time.Second)), w.patient())
	select {
	case <-l.Done():
	case <-time.After(patience):
		w.Fatal("the lease does not end")
	}
	w.matches("Release", l.Release(w.patient()), holdfast.ErrLost)
}

func (w *stage) lockAll(m *multilock.MultiLock, ctx context.Context) *multilock.Lease {
	w.Helper()
	l, err := m.Lock(ctx)
	if err != nil {
		w.Fatalf("Lock: %v", err)
	}
	return l
}
