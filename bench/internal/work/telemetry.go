// What OpenTelemetry costs where nobody takes in what it says.

package work

import (
	"context"
	"fmt"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
)

// Telemetry is the name of the workload, and its contenders are what is configured.
const (
	Telemetry     = "telemetry"
	TelemetryOff  = "off"
	TelemetryNoop = "no-op providers"
	TelemetrySDK  = "SDK, no-op exporter"
)

func telemetry() []Workload {
	return []Workload{{
		Name:       Telemetry,
		Title:      "uncontended pairs, 1 goroutine, with OpenTelemetry",
		Processes:  1,
		Contenders: []string{TelemetryOff, TelemetryNoop, TelemetrySDK},
		Run: func(ctx context.Context, s *Site) error {
			options, shutdown := telemetryOptions(s.Contender)
			defer shutdown()
			client, closeAll := peer.NewClient(s.Addr, options...)
			defer closeAll()
			lock := peer.Locker{Locker: client.Mutex(s.Name)}
			return s.Loop(ctx, 1, func(int) Task {
				return func(ctx context.Context) (int64, error) { return 1, timed(ctx, s, lock) }
			})
		},
	}}
}

// telemetryOptions returns what turns it on, and what ends it.
func telemetryOptions(contender string) (options []holdfast.Option, shutdown func()) {
	switch contender {
	case TelemetryOff:
		return nil, func() {}
	case TelemetryNoop:
		return []holdfast.Option{
			holdfast.WithTracerProvider(tracenoop.NewTracerProvider()),
			holdfast.WithMeterProvider(metricnoop.NewMeterProvider()),
		}, func() {}
	case TelemetrySDK:
		traces := trace.NewTracerProvider(trace.WithBatcher(tracetest.NewNoopExporter()))
		meters := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
		return []holdfast.Option{holdfast.WithTracerProvider(traces), holdfast.WithMeterProvider(meters)},
			func() {
				ctx := context.Background()
				_, _ = traces.Shutdown(ctx), meters.Shutdown(ctx) // nobody misses what is not exported
			}
	}
	panic(fmt.Sprintf("no telemetry is called %q", contender))
}
