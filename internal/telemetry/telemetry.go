// Package telemetry reports to OpenTelemetry what Holdfast does: one span around each
// acquisition and each release, and a small fixed set of metrics.
//
// It knows only the OpenTelemetry API, and no global provider. Nothing happens unless it was
// configured: without providers New returns a nil *Telemetry, whose methods cost one comparison
// and no allocation, so callers never ask whether telemetry is on.
//
// Two rules keep it safe to leave on. Unbounded values (the name of a lock, its fencing token,
// an error's text) go to spans and never to a metric; of a name's group, which the user may choose,
// a metric has a bounded number of values. And this package is never given the
// owner's id, with which a reader of the traces could act as a holder.
//
// docs/observability.md documents every span, metric and attribute for users. Change it
// together with this package.
package telemetry

import (
	"hash/maphash"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

const (
	// ScopeName is the name of the instrumentation scope of every span and metric.
	ScopeName = "github.com/holdfast-go/holdfast"

	// Version is the version of the instrumentation scope: that of the module.
	Version = "0.1.0"
)

// Telemetry records into the providers of one Client. A nil *Telemetry is valid and records
// nothing. All methods may be called concurrently. They block as long as the providers do, so
// none may be called under a mutex.
type Telemetry struct {
	tracer  trace.Tracer // nil without a TracerProvider
	metrics *metrics     // nil without a MeterProvider

	server   server
	subjects subjects
}

// New returns a Telemetry that records into tp and mp. Either may be nil, which leaves its half
// out; if both are nil, New returns (nil, nil). group puts names into groups, for the metrics; nil:
// there are none. addr is the server that the Client uses, "" if that is not known. If the meter refuses an
// instrument, New returns an error, and a Telemetry that has no metrics.
func New(tp trace.TracerProvider, mp metric.MeterProvider, group func(name string) string, addr string) (*Telemetry, error) {
	if tp == nil && mp == nil {
		return nil, nil
	}
	t := &Telemetry{server: serverAt(addr)}
	if tp != nil {
		t.tracer = tp.Tracer(ScopeName, trace.WithInstrumentationVersion(Version))
		t.subjects.seed = maphash.MakeSeed()
	}
	if mp != nil {
		m, err := newMetrics(mp.Meter(ScopeName, metric.WithInstrumentationVersion(Version)), group, t.server)
		if err != nil {
			return t, err
		}
		t.metrics = m
	}
	return t, nil
}
