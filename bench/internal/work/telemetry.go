// This workload measures what OpenTelemetry costs when nobody collects its output.

package work

import (
	"context"
	"fmt"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/bench/internal/peer"
)

// Telemetry is the name of the workload. Its contenders are the configurations.
const (
	Telemetry      = "telemetry"
	TelemetryOff   = "off"
	TelemetryNoop  = "no-op providers"
	TelemetrySDK   = "SDK, no-op exporter"
	TelemetryBatch = "SDK, batched, no-op exporter"
	// Each of these has the exporter of one of the two above. Holdfast itself has no telemetry.
	TelemetryEmptySDK   = "off, two empty spans around it"
	TelemetryEmptyBatch = "off, two empty spans around it, batched"
)

func telemetry() []Workload {
	return []Workload{{
		Name:       Telemetry,
		Title:      "uncontended pairs, 1 goroutine, with OpenTelemetry",
		Processes:  1,
		Contenders: []string{TelemetryOff, TelemetryNoop, TelemetryEmptySDK, TelemetrySDK, TelemetryEmptyBatch, TelemetryBatch},
		Window:     Window{Rounds: 11}, // they vary most
		Run: func(ctx context.Context, s *Site) error {
			traces, meters, shutdown := providers(s.Contender)
			defer shutdown()
			client, closeAll := peer.NewClient(s.Addr, telemetryOptions(s.Contender, traces, meters)...)
			defer closeAll()
			var lock peer.Lock = peer.Locker{Locker: client.Mutex(s.Name)}
			if s.Contender == TelemetryEmptySDK || s.Contender == TelemetryEmptyBatch {
				lock = spanned{client.Mutex(s.Name), traces.Tracer("bench")}
			}
			return s.Loop(ctx, 1, func(int) Task {
				return func(ctx context.Context) (int64, error) { return 1, timed(ctx, s, lock) }
			})
		},
	}}
}

// providers returns the providers of the SDK, with an exporter that does nothing, and a function
// that ends them. With the SDK's own batch processor each span wakes another goroutine, whatever
// library made the span.
func providers(contender string) (traces *sdktrace.TracerProvider, meters *sdkmetric.MeterProvider, shutdown func()) {
	export := sdktrace.WithBatcher(tracetest.NewNoopExporter())
	if contender == TelemetrySDK || contender == TelemetryEmptySDK {
		export = sdktrace.WithSyncer(tracetest.NewNoopExporter())
	}
	traces = sdktrace.NewTracerProvider(export)
	meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	return traces, meters, func() {
		ctx := context.Background()
		_, _ = traces.Shutdown(ctx), meters.Shutdown(ctx) // nobody needs what was not exported
	}
}

// telemetryOptions returns the options that give Holdfast these providers.
func telemetryOptions(contender string, traces *sdktrace.TracerProvider, meters *sdkmetric.MeterProvider) []holdfast.Option {
	switch contender {
	case TelemetryOff, TelemetryEmptySDK, TelemetryEmptyBatch:
		return nil
	case TelemetryNoop:
		return []holdfast.Option{
			holdfast.WithTracerProvider(tracenoop.NewTracerProvider()),
			holdfast.WithMeterProvider(metricnoop.NewMeterProvider()),
		}
	case TelemetrySDK, TelemetryBatch:
		return []holdfast.Option{holdfast.WithTracerProvider(traces), holdfast.WithMeterProvider(meters)}
	}
	panic(fmt.Sprintf("no telemetry is called %q", contender))
}

// spanned is a lock of a Client without telemetry, inside two spans without attributes. No library
// with a span for each of acquire and release can cost less than that.
type spanned struct {
	lock   holdfast.Locker
	tracer trace.Tracer
}

// Pair implements peer.Lock.
func (l spanned) Pair(ctx context.Context, work func()) error {
	acquiring, span := l.tracer.Start(ctx, "acquire")
	lease, err := l.lock.Lock(acquiring)
	span.End()
	if err != nil {
		return err
	}
	if work != nil {
		work()
	}
	releasing, span := l.tracer.Start(ctx, "release")
	defer span.End()
	return lease.Release(releasing)
}
