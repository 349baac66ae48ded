// A group is an attribute of few values, whatever the user's function does.

package telemetry_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// grouped is observe with groups.
func grouped(tb testing.TB, group func(string) string) *observed {
	tb.Helper()
	o := &observed{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	o.tp = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(o.spans))
	tel, err := telemetry.New(o.tp, sdkmetric.NewMeterProvider(sdkmetric.WithReader(o.reader)), group)
	if err != nil {
		tb.Fatal(err)
	}
	o.Telemetry = tel
	return o
}

// acquire records an acquisition of each name.
func (o *observed) acquire(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		_, a := o.Acquire(t.Context(), kind, name)
		a.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired})
	}
}

// acquisitions returns how many were recorded, by group.
func (o *observed) acquisitions(t *testing.T) map[string]uint64 {
	t.Helper()
	counts := make(map[string]uint64)
	for _, p := range histogram(t, o.collect(t)["holdfast.acquire.duration"]).DataPoints {
		group, _ := p.Attributes.Value("holdfast.group")
		counts[group.AsString()] += p.Count
	}
	return counts
}

// prefix is the function that most users want.
func prefix(name string) string {
	before, _, _ := strings.Cut(name, ":")
	return before
}

func TestNamesAreCountedByGroup(t *testing.T) {
	o := grouped(t, prefix)
	o.acquire(t, "orders:1", "orders:2", "stock:1", ":none")
	if got, want := fmt.Sprint(o.acquisitions(t)), "map[:1 orders:2 stock:1]"; got != want {
		t.Errorf("acquisitions %s, want %s", got, want)
	}
	for _, span := range o.spans.Ended() {
		for _, kv := range span.Attributes() {
			if kv.Key == "holdfast.group" {
				t.Errorf("a span has %v", kv)
			}
		}
	}
}

func TestGroupsPastTheLastAreOther(t *testing.T) {
	o := grouped(t, func(name string) string { return name })
	for i := range 2 * telemetry.MaxGroups {
		o.acquire(t, fmt.Sprint("g", i), fmt.Sprint("g", i))
	}
	o.acquire(t, "g0", telemetry.OtherGroup)
	got := o.acquisitions(t)
	if len(got) != telemetry.MaxGroups+1 {
		t.Errorf("%d groups: %v", len(got), got)
	}
	last, tooMany := fmt.Sprint("g", telemetry.MaxGroups-1), fmt.Sprint("g", telemetry.MaxGroups)
	if got["g0"] != 3 || got[last] != 2 || got[tooMany] != 0 || got[telemetry.OtherGroup] != 2*telemetry.MaxGroups+1 {
		t.Errorf("acquisitions %v", got)
	}
}

func TestWhatIsNoGroupIsOther(t *testing.T) {
	for _, tc := range []struct {
		name  string
		group func(string) string
	}{
		{"a panic", func(string) string { panic("a function of the user's") }},
		{"too long", func(string) string { return strings.Repeat("x", 65) }},
		{"no text", func(string) string { return "\xff" }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := grouped(t, tc.group)
			o.acquire(t, "orders:1", "orders:2")
			if got := o.acquisitions(t); got["other"] != 2 || len(got) != 1 {
				t.Errorf("acquisitions %v", got)
			}
		})
	}
	o := grouped(t, func(string) string { return strings.Repeat("x", 64) })
	o.acquire(t, "orders:1")
	if got := o.acquisitions(t); got["other"] != 0 {
		t.Errorf("64 bytes are other: %v", got)
	}
}

// What is measured of a kind has the group; what is measured of all kinds has neither.
func TestTheGroupIsOnAllThatHasAKind(t *testing.T) {
	o := grouped(t, prefix)
	_, a := o.Acquire(t.Context(), kind, "orders:42")
	lives(t, o.Telemetry, a)
	for name, m := range o.collect(t) {
		for _, set := range attributesOf(t, m) {
			_, ofKind := set.Value("holdfast.kind")
			if group, ok := set.Value("holdfast.group"); ok != ofKind || ok && group.AsString() != "orders" {
				t.Errorf("%s has %v", name, set.ToSlice())
			}
		}
	}
}

// lives records everything of a lock's life after that acquisition.
func lives(t *testing.T, tel *telemetry.Telemetry, a telemetry.Acquisition) {
	t.Helper()
	of := a.Kind()
	tel.Waiting(of, 1)
	tel.Woken(of, telemetry.WokenMessage)
	tel.Waiting(of, -1)
	a.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired})
	tel.Active(of, 1)
	tel.Renewed(of, telemetry.OutcomeRenewed, 1)
	tel.RenewalBatch(1, 1)
	tel.RenewalBacklog(1)
	tel.Reconnected()
	tel.LongHeld(tel.Kind(kind, "orders:42"))
	tel.Lost(of, telemetry.LostServer, 1)
	tel.Expired(of, 1)
	tel.Active(of, -1)
	_, r := tel.Release(t.Context(), of, "orders:42")
	r.End(telemetry.OutcomeReleased, 1, nil)
}

func attributesOf(t *testing.T, m metricdata.Metrics) []attribute.Set {
	t.Helper()
	var sets []attribute.Set
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	case metricdata.Histogram[int64]:
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	default:
		t.Fatalf("%s is a %T", m.Name, m.Data)
	}
	return sets
}

// The function is the user's, and is called while nothing is locked.
func TestTheFunctionMayAskForAGroupItself(t *testing.T) {
	var o *observed
	o = grouped(t, func(name string) string {
		if name == "outer" {
			o.Kind(kind, "inner")
		}
		return name
	})
	o.acquire(t, "outer")
	if got := o.acquisitions(t); got["outer"] != 1 {
		t.Errorf("acquisitions %v", got)
	}
}

func TestGroupsOfManyGoroutines(t *testing.T) {
	o := grouped(t, func(name string) string { return name })
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := range 100 {
				o.acquire(t, fmt.Sprint("g", (g+i)%30))
			}
		})
	}
	all.Wait()
	var sum uint64
	got := o.acquisitions(t)
	for _, n := range got {
		sum += n
	}
	if len(got) != telemetry.MaxGroups+1 || sum != 800 {
		t.Errorf("%d groups, %d acquisitions: %v", len(got), sum, got)
	}
}

func TestWithoutMetersNobodyIsAsked(t *testing.T) {
	tel, err := telemetry.New(sdktrace.NewTracerProvider(), nil, func(string) string {
		t.Error("the function is called, and there is nothing to record")
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	_, a := tel.Acquire(t.Context(), kind, "orders:42")
	a.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired})
}

func TestGroupsAllocateNothingOfTheirOwn(t *testing.T) {
	names := []string{"orders:1", "orders:2", "stock:1"}
	tel, err := telemetry.New(nil, metricnoop.NewMeterProvider(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	n := testing.AllocsPerRun(1000, func() {
		for _, name := range names {
			_, a := tel.Acquire(ctx, kind, name)
			a.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired})
			tel.Active(a.Kind(), 1)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for %d locks, want 0", n, len(names))
	}
}
