// Spans have the right names, attributes, status and parents.

package telemetry_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// only returns the only span that has ended.
func (o *observed) only(t *testing.T) sdktrace.ReadOnlySpan {
	t.Helper()
	ended := o.spans.Ended()
	if len(ended) != 1 {
		t.Fatalf("%d spans ended, want 1", len(ended))
	}
	return ended[0]
}

func attributes(span sdktrace.ReadOnlySpan) map[string]any {
	m := make(map[string]any)
	for _, kv := range span.Attributes() {
		m[string(kv.Key)] = kv.Value.AsInterface()
	}
	return m
}

// Each operation has one span with all that is known of it, and no more: a grant without a token has none, and
// an inner release ends no hold.
func TestTheSpanOfEachOperation(t *testing.T) {
	acquire := func(end telemetry.Acquired) func(o *observed) {
		return func(o *observed) { _, a := o.Acquire(t.Context(), kind, "orders:42"); a.End(end) }
	}
	release := func(held time.Duration) func(o *observed) {
		return func(o *observed) {
			_, r := o.Release(t.Context(), of, "orders:42")
			r.End(telemetry.OutcomeReleased, held, nil)
		}
	}
	for _, tc := range []struct {
		record func(o *observed)
		name   string
		want   map[string]any // beside kind and name
	}{
		{acquire(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired, Attempts: 3, Waited: 1500 * time.Millisecond, Token: 1_700_000_000_000_001}), "acquire",
			map[string]any{"outcome": "acquired", "reentrant": false, "attempts": int64(3), "wait.duration": 1.5, "token": int64(1_700_000_000_000_001)}},
		{acquire(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired}), "acquire",
			map[string]any{"outcome": "acquired", "reentrant": false, "attempts": int64(0), "wait.duration": 0.0}},
		{release(250 * time.Millisecond), "release", map[string]any{"outcome": "released", "hold.duration": 0.25}},
		{release(telemetry.StillHeld), "release", map[string]any{"outcome": "released"}},
	} {
		o := grouped(t, prefix) // a span has the name, and no group
		tc.record(o)
		span := o.only(t)
		if span.Name() != "holdfast.lock."+tc.name || span.SpanKind() != trace.SpanKindInternal || span.Status().Code != codes.Unset {
			t.Errorf("span %q of kind %v, status %v", span.Name(), span.SpanKind(), span.Status())
		}
		if scope := span.InstrumentationScope(); scope.Name != telemetry.ScopeName || scope.Version != telemetry.Version {
			t.Errorf("scope %s %s", scope.Name, scope.Version)
		}
		want := map[string]any{"holdfast.kind": kind, "holdfast.name": "orders:42"}
		for key, value := range tc.want {
			want["holdfast."+key] = value
		}
		if got := attributes(span); !maps.Equal(got, want) {
			t.Errorf("attributes\n got %v\nwant %v", got, want)
		}
		if _, held := o.collect(t)["holdfast.hold.duration"]; held != (tc.want["hold.duration"] != nil) {
			t.Errorf("%s, %v: recorded as the end of a hold: %v", tc.name, tc.want, held)
		}
	}
}

func TestKindAndNameAreThereForTheSampler(t *testing.T) {
	var seen []attribute.KeyValue
	tp := sdktrace.NewTracerProvider(sdktrace.WithSampler(samplerFunc(func(p sdktrace.SamplingParameters) {
		seen = p.Attributes
	})))
	_, a := newTelemetry(t, tp, nil, nil, "").Acquire(t.Context(), kind, "orders:42")
	a.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired})
	if len(seen) != 2 {
		t.Errorf("the sampler saw %v", seen)
	}
}

type samplerFunc func(sdktrace.SamplingParameters)

func (f samplerFunc) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	f(p)
	return sdktrace.SamplingResult{Decision: sdktrace.Drop}
}

func (samplerFunc) Description() string { return "samplerFunc" }

// The start options of a span are kept for names in use. Each span still has its own kind and name,
// even if there are more names than are kept.
func TestEachSpanHasItsOwnKindAndName(t *testing.T) {
	o := observe(t)
	const names = 1000 // more than are kept
	want := make(map[string]int)
	for range 2 {
		for i := range names {
			for _, kind := range []string{"mutex", "fairmutex"} {
				name := fmt.Sprint("orders:", i)
				_, a := o.Acquire(t.Context(), kind, name)
				a.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired})
				want[kind+" "+name]++
			}
		}
	}
	got := make(map[string]int)
	for _, span := range o.spans.Ended() {
		attrs := attributes(span)
		got[fmt.Sprint(attrs["holdfast.kind"], " ", attrs["holdfast.name"])]++
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d kinds and names on spans, want %d, twice each", len(got), len(want))
	}
}

func TestNamesOfAnyBytesAreExportable(t *testing.T) {
	o := observe(t)
	_, a := o.Acquire(t.Context(), kind, "orders:\xff\xfe42")
	a.End(telemetry.Acquired{Outcome: telemetry.OutcomeError, Err: errors.New("lock \xff: refused")})

	span := o.only(t)
	redistest.Equal(t, attributes(span)["holdfast.name"], "orders:\uFFFD42", "holdfast.name = %q")
	if got := span.Status().Description; !utf8.ValidString(got) {
		t.Errorf("status %q is not UTF-8", got)
	}
}

func TestZeroValuesRecordNothing(t *testing.T) {
	telemetry.Acquisition{}.End(telemetry.Acquired{Outcome: telemetry.OutcomeError})
	telemetry.Releasing{}.End(telemetry.OutcomeError, time.Second, errs.Lost)
}

// Several locks are acquired as one, and their spans belong to one whole.
func TestWholeIsTheParentOfItsParts(t *testing.T) {
	o := observe(t)
	outer, span := o.Acquire(t.Context(), kind, "the caller's")
	ctx, whole := telemetry.Together(outer, "multi", "a, b")
	var silent *telemetry.Telemetry // the Client of the first part has no telemetry
	_, none := silent.Acquire(ctx, kind, "a")
	none.End(telemetry.Acquired{})
	_, toNobody := telemetry.Together(t.Context(), "multi", "a, b")
	toNobody.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired})
	if whole.Telemetry() != nil || toNobody.Telemetry() != nil {
		t.Error("told before a part with telemetry has begun")
	}
	_, part := o.Acquire(ctx, kind, "b")
	part.End(telemetry.Acquired{Outcome: telemetry.OutcomeBusy})
	_, back := o.Release(ctx, of, "a")
	back.End(telemetry.OutcomeReleased, 0, nil)
	whole.End(telemetry.Acquired{Outcome: telemetry.OutcomeBusy, Attempts: 1, Waited: telemetry.ToldByParts})
	span.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired})
	if whole.Telemetry() == nil {
		t.Error("told to nobody")
	}

	ended := o.spans.Ended()
	if len(ended) != 4 {
		t.Fatalf("%d spans ended, want 4", len(ended))
	}
	all, caller := ended[2], ended[3]
	for _, one := range ended[:2] {
		if one.Parent().SpanID() != all.SpanContext().SpanID() {
			t.Errorf("%s %v is no child of the whole", one.Name(), attributes(one))
		}
	}
	if all.Parent().SpanID() != caller.SpanContext().SpanID() || caller.Parent().SpanID() != (trace.SpanID{}) {
		t.Error("the whole is no child of the caller's")
	}
	if all.StartTime().After(ended[0].StartTime()) {
		t.Error("the whole begins after a part")
	}
	has := attributes(all)
	if _, there := has["holdfast.wait.duration"]; there || has["holdfast.kind"] != "multi" || has["holdfast.outcome"] != "busy" {
		t.Errorf("attributes %v", has)
	}
}
