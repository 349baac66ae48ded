// What a lock costs its caller.

package holdfast_test

import (
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// lockAndRelease is one uncontended pair.
func lockAndRelease(b *testing.B, m lease.Locker) {
	b.Helper()
	l, err := m.Lock(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if err := l.Release(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkUncontendedPair locks and releases against a real server.
func BenchmarkUncontendedPair(b *testing.B) {
	client := holdfast.New(redistest.Server(b).Client(b))
	defer client.Close()
	m := client.Mutex(name)
	lockAndRelease(b, m)
	b.Run("one goroutine", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			lockAndRelease(b, m)
		}
	})
	b.Run("parallel, a name each", func(b *testing.B) {
		b.SetParallelism(16)
		b.ReportAllocs()
		names := make(chan string, 1024)
		for i := range cap(names) {
			names <- name + string(rune('0'+i))
		}
		b.RunParallel(func(pb *testing.PB) {
			m := client.Mutex(<-names)
			for pb.Next() {
				lockAndRelease(b, m)
			}
		})
	})
}

// BenchmarkReEntry locks and releases inside a hold: two changes of the count.
func BenchmarkReEntry(b *testing.B) {
	client := holdfast.New(redistest.Server(b).Client(b))
	defer client.Close()
	m := client.Mutex(name)
	outer, err := m.Lock(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer outer.Release(b.Context())
	ctx := outer.Context(b.Context())
	b.ReportAllocs()
	for b.Loop() {
		l, err := m.Lock(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Release(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// benchmarkLockPath measures one goroutine's pair, with what telemetry adds.
func benchmarkLockPath(b *testing.B, options ...holdfast.Option) {
	client := holdfast.New(redistest.Server(b).Client(b), options...)
	defer client.Close()
	m := client.Mutex(name)
	lockAndRelease(b, m)
	b.ReportAllocs()
	for b.Loop() {
		lockAndRelease(b, m)
	}
}

func BenchmarkLockPath_TelemetryOff(b *testing.B) { benchmarkLockPath(b) }

func BenchmarkLockPath_TelemetryNoopProviders(b *testing.B) {
	benchmarkLockPath(b,
		holdfast.WithTracerProvider(tracenoop.NewTracerProvider()),
		holdfast.WithMeterProvider(metricnoop.NewMeterProvider()))
}
