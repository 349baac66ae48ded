// This file measures what a lock costs its caller.

package holdfast_test

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// lockAndRelease locks and releases once, without contention.
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
	m := client.Mutex(world.Name)
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
			names <- world.Name + string(rune('0'+i))
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
	m := client.Mutex(world.Name)
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

// BenchmarkCohort makes goroutines of one process lock one name and release it at once.
func BenchmarkCohort(b *testing.B) {
	for _, goroutines := range []int{16, 128, 1000} {
		b.Run(strconv.Itoa(goroutines), func(b *testing.B) {
			client := holdfast.New(redistest.Server(b).Client(b))
			defer client.Close()
			m := client.Mutex(world.Name)
			lockAndRelease(b, m)
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for range goroutines {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						section(b, m, 0)
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "grants/s")
		})
	}
}

// benchmarkLockPath measures how long one goroutine takes to lock and release, with the given
// telemetry.
func benchmarkLockPath(b *testing.B, options ...holdfast.Option) {
	client := holdfast.New(redistest.Server(b).Client(b), options...)
	defer client.Close()
	m := client.Mutex(world.Name)
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

// BenchmarkStripes makes 256 workers of four Clients hold their locks for 20 ms. In the first case
// all workers use one lock. In the other cases each worker uses one of 16 stripes each time: in the
// second case all keys are used equally, in the third a few keys get most of the use. So many
// workers keep nearly every stripe busy: if w workers choose at random, a share of w / (w + 15) of
// the 16 stripes is busy. The work is so long that it takes nearly all the time, and the machine
// does not matter.
func BenchmarkStripes(b *testing.B) {
	const processes, workers, stripes, keys, work = 4, 256, 16, 10_000, 20 * time.Millisecond
	even := func(r *rand.Rand) func() int { return func() int { return r.IntN(keys) } }
	skewed := func(r *rand.Rand) func() int {
		zipf := rand.NewZipf(r, 1.2, 1, keys-1)
		return func() int { return int(zipf.Uint64()) }
	}
	for _, bc := range []struct {
		name    string
		stripes int
		key     func(*rand.Rand) func() int
	}{
		{"one lock", 1, even}, {"16 stripes", stripes, even}, {"16 stripes, skewed keys", stripes, skewed},
	} {
		b.Run(bc.name, func(b *testing.B) {
			server := redistest.Server(b)
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			clients := make([]*holdfast.Client, processes)
			for i := range clients {
				clients[i] = holdfast.New(server.Client(b))
				defer clients[i].Close()
			}
			b.ResetTimer()
			for i := range workers {
				striped := clients[i%processes].Striped("stock", bc.stripes)
				key := bc.key(rand.New(rand.NewPCG(uint64(i), 1)))
				all.Go(func() {
					for left.Add(-1) >= 0 {
						section(b, striped.For(strconv.Itoa(key())), work)
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sections/s")
		})
	}
}

// section locks m and keeps the lock for as long as the work takes.
func section(b *testing.B, m lease.Locker, work time.Duration) {
	l, err := m.Lock(b.Context())
	if err != nil {
		b.Error(err)
		return
	}
	time.Sleep(work)
	if err := l.Release(b.Context()); err != nil {
		b.Error(err)
	}
}
