// Package telemetry tells OpenTelemetry what Holdfast does: one span around
// each acquisition and each release, and a small fixed set of metrics.
//
// It knows only the OpenTelemetry API and no global provider. What was not
// configured does not happen: without providers New returns a nil *Telemetry,
// and each method of that is a comparison and no allocation, so callers never
// ask whether telemetry is on.
//
// Two rules keep it safe to leave on. Whatever is unbounded (the name of a lock,
// its fencing number, an error's text) goes to spans and never to a metric. And
// what would let a reader of the traces act as a holder (the owner's id) is not
// told to this package at all.
//
// docs/observability.md is the user's page of it: every span, metric and
// attribute. A change here is a change there.
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
	Version = "0.1.0-dev"
)

// Telemetry records into the providers of one Client. A nil *Telemetry is valid
// and records nothing. All methods may be called concurrently; none of them
// blocks longer than the providers do, so none may be called under a mutex.
type Telemetry struct {
	tracer  trace.Tracer // nil without a TracerProvider
	metrics *metrics     // nil without a MeterProvider

	subjects subjects
}

// New returns what records into tp and mp. Either may be nil, which leaves its
// half out; both nil give (nil, nil). A meter that refuses an instrument gives
// an error and a nil *Telemetry, with which the caller can go on unobserved.
func New(tp trace.TracerProvider, mp metric.MeterProvider) (*Telemetry, error) {
	if tp == nil && mp == nil {
		return nil, nil
	}
	t := new(Telemetry)
	if tp != nil {
		t.tracer = tp.Tracer(ScopeName, trace.WithInstrumentationVersion(Version))
		t.subjects.seed = maphash.MakeSeed()
	}
	if mp != nil {
		m, err := newMetrics(mp.Meter(ScopeName, metric.WithInstrumentationVersion(Version)))
		if err != nil {
			return nil, err
		}
		t.metrics = m
	}
	return t, nil
}
