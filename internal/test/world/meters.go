// A MeterProvider that calls a function of the test's.

package world

import (
	"context"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/embedded"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
)

// Meters is a MeterProvider that calls Counted for whatever is added to one of its counters, which may go down too.
type Meters struct {
	metricnoop.MeterProvider
	Counted func(counter string, n int64)
}

// Meter returns a meter that does so.
func (p *Meters) Meter(string, ...metric.MeterOption) metric.Meter { return meter{of: p} }

type meter struct {
	metricnoop.Meter
	of *Meters
}

func (m meter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return counter{of: m.of, name: name}, nil
}

func (m meter) Int64UpDownCounter(name string, _ ...metric.Int64UpDownCounterOption) (metric.Int64UpDownCounter, error) {
	return counter{of: m.of, name: name}, nil
}

// counter is a counter of either sort.
type counter struct {
	metricnoop.Int64Counter
	embedded.Int64UpDownCounter
	of   *Meters
	name string
}

func (c counter) Add(_ context.Context, n int64, _ ...metric.AddOption) { c.of.Counted(c.name, n) }
