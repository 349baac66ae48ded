// The metrics have the right names, units, attributes and values, and none of them contains the
// name of a lock.

package telemetry_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// points returns what one instrument has recorded: for each set of attributes, as key=value,key=value, the
// value or the sum of the values.
func points(t *testing.T, m metricdata.Metrics) map[string]float64 {
	t.Helper()
	all := make(map[string]float64)
	at := func(s attribute.Set) string { return s.Encoded(attribute.DefaultEncoder()) }
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			all[at(p.Attributes)] = float64(p.Value)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			all[at(p.Attributes)] = p.Sum
		}
	case metricdata.Histogram[int64]:
		for _, p := range data.DataPoints {
			all[at(p.Attributes)] = float64(p.Sum)
		}
	default:
		t.Fatalf("%s is a %T", m.Name, m.Data)
	}
	return all
}

func histogram(t *testing.T, m metricdata.Metrics) metricdata.Histogram[float64] {
	t.Helper()
	h, ok := m.Data.(metricdata.Histogram[float64])
	if !ok {
		t.Fatalf("%s is a %T, not a histogram of floats", m.Name, m.Data)
	}
	return h
}

// Each instrument has its name, its unit and a description, and counts by the attributes that it should.
func TestEachInstrument(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		o := observe(t)
		fair := telemetry.Kind{Name: "fair"}
		for _, end := range []telemetry.Acquired{
			{Outcome: telemetry.OutcomeAcquired}, {Outcome: telemetry.OutcomeAcquired},
			{Outcome: telemetry.OutcomeAcquired, Reentrant: true},
			{Outcome: telemetry.OutcomeTimeout, Err: errs.Busy},
			{Outcome: telemetry.OutcomeError, Err: errs.OutOfMemory},
		} {
			_, a := o.Acquire(t.Context(), kind, "orders:42")
			time.Sleep(250 * time.Millisecond)
			a.End(end)
		}
		for outcome, held := range map[telemetry.Outcome]time.Duration{telemetry.OutcomeReleased: 2 * time.Second, telemetry.OutcomeLost: 3 * time.Second} {
			_, r := o.Release(t.Context(), of, "orders:42")
			r.End(outcome, held, map[bool]error{true: errs.Lost}[outcome == telemetry.OutcomeLost])
		}
		for _, n := range []int64{1, 1, -1} {
			o.Active(of, n)
			o.Waiters(of, 5*n)
		}
		o.Active(fair, 1)
		o.Permits(of, 3)
		o.Permits(of, -1)
		o.Renewed(of, telemetry.OutcomeRenewed, 40)
		o.Renewed(of, telemetry.OutcomeRenewed, 2)
		o.Renewed(of, telemetry.OutcomeGone, 1)
		o.Lost(of, telemetry.LostServer, 1)
		o.Lost(of, telemetry.LostDeadline, 1)
		o.Lost(of, telemetry.LostDeadline, 1)
		o.Woken(of, telemetry.WokenTimer)
		o.Woken(fair, telemetry.WokenTurn)
		o.Reconnected()
		o.Reconnected()
		o.LongHeld(telemetry.Kind{Name: "rwlock"})
		o.RenewalBatch(4*time.Millisecond, 250)
		o.RenewalBacklog(7)

		type values = map[string]float64
		want := map[string]struct {
			unit   string
			values values
		}{
			"holdfast.acquire.duration": {"s", values{
				"holdfast.kind=mutex,holdfast.outcome=acquired":                         0.5,
				"holdfast.kind=mutex,holdfast.outcome=acquired,holdfast.reentrant=true": 0.25,
				"holdfast.kind=mutex,holdfast.outcome=timeout":                          0.25,
				"error.type=out_of_memory,holdfast.kind=mutex,holdfast.outcome=error":   0.25,
			}},
			"holdfast.hold.duration": {"s", values{
				"holdfast.kind=mutex,holdfast.outcome=released":             2,
				"error.type=lost,holdfast.kind=mutex,holdfast.outcome=lost": 3,
			}},
			"holdfast.renewal.duration":   {"s", values{"": 0.004}},
			"holdfast.renewal.batch.size": {"{renewal}", values{"": 250}},
			"holdfast.renewal.backlog":    {"{renewal}", values{"": 7}},
			"holdfast.lock.active":        {"{lock}", values{"holdfast.kind=mutex": 1, "holdfast.kind=fair": 1}},
			"holdfast.permit.active":      {"{permit}", values{"holdfast.kind=mutex": 2}},
			"holdfast.waiter.active":      {"{waiter}", values{"holdfast.kind=mutex": 5}},
			"holdfast.renewals": {"{renewal}", values{
				"holdfast.kind=mutex,holdfast.outcome=renewed": 42, "holdfast.kind=mutex,holdfast.outcome=gone": 1,
			}},
			"holdfast.lock.lost": {"{lock}", values{
				"holdfast.kind=mutex,holdfast.reason=server": 1, "holdfast.kind=mutex,holdfast.reason=deadline": 2,
			}},
			"holdfast.wakeups": {"{wakeup}", values{
				"holdfast.kind=mutex,holdfast.reason=timer": 1, "holdfast.kind=fair,holdfast.reason=turn": 1,
			}},
			"holdfast.pubsub.reconnects": {"{reconnect}", values{"": 2}},
			"holdfast.lock.long_held":    {"{lock}", values{"holdfast.kind=rwlock": 1}},
		}
		got := o.collect(t)
		for name, want := range want {
			m := got[name]
			if m.Unit != want.unit || m.Description == "" {
				t.Errorf("%s: unit %q, want %q, description %q", name, m.Unit, want.unit, m.Description)
			}
			values := points(t, m)
			maps.DeleteFunc(values, func(_ string, n float64) bool { return n == 0 }) // see TestCountersAreThereBeforeTheyCount
			if !maps.Equal(values, want.values) {
				t.Errorf("%s: %v, want %v", name, values, want.values)
			}
		}
		redistest.Equal(t, len(got), len(want), "%d metrics, want %d", len(want))
		if got["holdfast.lock.active"].Data.(metricdata.Sum[int64]).IsMonotonic {
			t.Error("holdfast.lock.active is monotonic")
		}
		bounds := []float64{
			50e-6, 100e-6, 250e-6, 500e-6,
			1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 100e-3, 250e-3, 500e-3,
			1, 2.5, 5, 10, 30, 60,
		}
		if p := histogram(t, got["holdfast.acquire.duration"]).DataPoints[0]; !slices.Equal(p.Bounds, bounds) {
			t.Errorf("bounds %v, want %v", p.Bounds, bounds)
		}
	})
}

// A program with two Redis tells by every measurement which of them it is about, but for those of what is on several.
func TestTheServerIsOnEverything(t *testing.T) {
	for addr, want := range map[string]string{
		"redis.internal:6380": "server.address=redis.internal,server.port=6380",
		"[2001:db8::1]:6379":  "server.address=2001:db8::1,server.port=6379",
		"/run/redis.sock":     "server.address=/run/redis.sock",
		"":                    "",
	} {
		o := observeAt(t, nil, addr)
		for _, kind := range []telemetry.Kind{of, {Name: "multi"}, {Name: "quorum"}} {
			_, a := o.Acquire(t.Context(), kind.Name, "orders:42")
			a.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired})
			_, r := o.Release(t.Context(), kind, "orders:42")
			r.End(telemetry.OutcomeReleased, time.Second, nil)
			o.Active(kind, 1)
		}
		o.RenewalBatch(time.Millisecond, 1)
		o.RenewalBacklog(1)
		o.Reconnected()
		check := func(what, attributes string) {
			_, got, _ := strings.Cut(","+attributes, ",server.") // nothing comes after these
			if got != "" {
				got = "server." + got
			}
			want := want
			if strings.Contains(attributes, "kind=multi") || strings.Contains(attributes, "kind=quorum") {
				want = ""
			}
			if got != want {
				t.Errorf("%s: %s, want %s", what, attributes, want)
			}
		}
		for _, span := range o.spans.Ended() {
			set := attribute.NewSet(span.Attributes()...)
			check(span.Name(), set.Encoded(attribute.DefaultEncoder()))
		}
		for name, m := range o.collect(t) {
			for attributes := range points(t, m) {
				check(name, attributes)
			}
		}
	}
}

func TestTheSpanIsTheExemplar(t *testing.T) {
	o := observe(t)
	o.acquire(t, "orders:42")
	id := o.only(t).SpanContext().SpanID()
	exemplars := histogram(t, o.collect(t)["holdfast.acquire.duration"]).DataPoints[0].Exemplars
	if len(exemplars) != 1 || string(exemplars[0].SpanID) != string(id[:]) {
		t.Errorf("exemplars %v, want the span %s", exemplars, id)
	}
}

// Goroutines share attribute sets and groups, and new ones appear while others are in use.
func TestManyGoroutines(t *testing.T) {
	o := grouped(t, func(name string) string { return name })
	const goroutines, rounds = 8, 200
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range rounds {
				o.Active(telemetry.Kind{Name: fmt.Sprint((g + i) % 5)}, 1)
				_, a := o.Acquire(t.Context(), fmt.Sprint(i%5), fmt.Sprint("g", (g+i)%30))
				a.End(telemetry.Acquired{Outcome: telemetry.Outcome(1 + i%5)})
			}
		})
	}
	wg.Wait()
	var active float64
	for _, n := range points(t, o.collect(t)["holdfast.lock.active"]) {
		active += n
	}
	var acquired uint64
	groups := o.acquisitions(t)
	for _, n := range groups {
		acquired += n
	}
	if active != goroutines*rounds || acquired != goroutines*rounds || len(groups) != telemetry.MaxGroups+1 {
		t.Errorf("counted %v active and %d acquired, want %d each; %d groups", active, acquired, goroutines*rounds, len(groups))
	}
}

// An alarm on the first loss needs a series that starts at 0.
func TestCountersAreThereBeforeTheyCount(t *testing.T) {
	o := observe(t)
	o.Active(of, 1)
	o.Waiters(of, 1)
	got := o.collect(t)
	for counter, want := range map[string][]string{
		"holdfast.lock.lost reason": {telemetry.LostServer, telemetry.LostDeadline, telemetry.LostClosed, telemetry.LostMaxHold, telemetry.LostSuperseded, telemetry.LostMember},
		"holdfast.renewals outcome": {"renewed", "gone", "failed"},
		"holdfast.wakeups reason":   {telemetry.WokenMessage, telemetry.WokenTimer, telemetry.WokenTurn},
	} {
		name, by, _ := strings.Cut(counter, " ")
		values := points(t, got[name])
		for _, value := range want {
			if n, there := values["holdfast.kind=mutex,holdfast."+by+"="+value]; n != 0 || !there {
				t.Errorf("%s of %s: %v, there: %v; want 0", name, value, n, there)
			}
		}
	}
	if n, there := points(t, got["holdfast.pubsub.reconnects"])[""]; n != 0 || !there {
		t.Errorf("reconnects: %v, there: %v; want 0", n, there)
	}
}
