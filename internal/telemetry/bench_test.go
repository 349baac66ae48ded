// These benchmarks measure what telemetry costs for one lock: off, and with each half on.

package telemetry_test

import (
	"context"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-go/holdfast/internal/telemetry"
)

func BenchmarkLock(b *testing.B) {
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	// There is no processor: spans are made and filled in, and go nowhere.
	sampled := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.AlwaysSample()))
	dropped := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))

	b.Run("off", func(b *testing.B) { benchmarkLock(b, nil) })
	b.Run("metrics", func(b *testing.B) { benchmarkLock(b, newTelemetry(b, nil, meters)) })
	b.Run("metrics by group", func(b *testing.B) {
		tel, err := telemetry.New(nil, meters, prefix)
		if err != nil {
			b.Fatal(err)
		}
		benchmarkLock(b, tel)
	})
	b.Run("spans dropped", func(b *testing.B) { benchmarkLock(b, newTelemetry(b, dropped, nil)) })
	b.Run("spans sampled", func(b *testing.B) { benchmarkLock(b, newTelemetry(b, sampled, nil)) })
	b.Run("both", func(b *testing.B) { benchmarkLock(b, newTelemetry(b, sampled, meters)) })
}

// benchmarkLock records an uncontended lock and its release.
func benchmarkLock(b *testing.B, tel *telemetry.Telemetry) {
	ctx := context.Background()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, a := tel.Acquire(ctx, kind, "orders:42")
			a.End(telemetry.Acquired{Outcome: telemetry.OutcomeAcquired, Attempts: 1, Token: 7})
			of := a.Kind()
			tel.Active(of, 1)
			tel.Active(of, -1)
			_, r := tel.Release(ctx, of, "orders:42")
			r.End(telemetry.OutcomeReleased, 1, nil)
		}
	})
}
