//go:build !race

// The tests measure what a lock costs in memory, when it is locked and released and while it is
// held. The race detector keeps books of its own, which would count.

package holdfast_test

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// pairAllocations is the most allocations that locking and releasing an uncontended Mutex may make,
// including go-redis's own. Allocations are exact where times are not, so they show that the path
// of every lock has grown. Lower the number when the allocations become fewer.
const pairAllocations = 7

// heldBytes is the most heap that a held renewed lock may take before Context is called: its name,
// the Mutex, the Lease and everything that renews it.
const heldBytes = 400

// Locking and releasing an uncontended Mutex makes no more allocations than it did.
func TestMemory_UncontendedPair(t *testing.T) {
	server := redistest.Server(t)
	allocations := func(options ...holdfast.Option) float64 {
		client := holdfast.New(server.Client(t), options...)
		defer client.Close()
		m := client.Mutex(world.Name)
		least := math.Inf(1)
		// On a busy machine answers come late, and for each of those the end of its context is watched, which
		// allocates. So the least of many pairs counts.
		for range 200 {
			least = min(least, testing.AllocsPerRun(1, func() {
				l, err := m.Lock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}))
		}
		return least
	}
	off := allocations()
	on := allocations(
		holdfast.WithTracerProvider(tracenoop.NewTracerProvider()),
		holdfast.WithMeterProvider(metricnoop.NewMeterProvider()))
	t.Logf("%v allocations a pair, %v with OpenTelemetry on", off, on)
	if off > pairAllocations {
		t.Errorf("%v allocations a pair, want at most %d", off, pairAllocations)
	}
}

// Held locks cost little heap and no goroutines.
func TestMemory_HeldLocks(t *testing.T) {
	const count = 20_000
	client := holdfast.New(redistest.Server(t).Client(t))
	defer client.Close()
	lockMany(t, client, "first", make([]*lease.Lease, 64)) // starts connections, wheel, goroutines
	leases := make([]*lease.Lease, count)

	goroutines, before := runtime.NumGoroutine(), heapInUse()
	lockMany(t, client, "order", leases)
	perLease := float64(heapInUse()-before) / count
	more := runtime.NumGoroutine() - goroutines
	t.Logf("%.0f B a lease, %d goroutines more", perLease, more)
	if perLease > heldBytes {
		t.Errorf("%.0f B a lease, want at most %d", perLease, heldBytes)
	}
	if more > 8 { // such as the goroutines that renew, of which there is one per server
		t.Errorf("%d goroutines more, for %d leases", more, count)
	}
	runtime.KeepAlive(leases)
}

// lockMany locks a name with that prefix for each element of leases.
func lockMany(t *testing.T, client *holdfast.Client, prefix string, leases []*lease.Lease) {
	t.Helper()
	const workers = 64
	var all sync.WaitGroup
	for first := range workers {
		all.Go(func() {
			for i := first; i < len(leases); i += workers {
				l, err := client.Mutex(fmt.Sprintf("%s:%07d", prefix, i)).Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				leases[i] = l
			}
		})
	}
	all.Wait()
}

// heapInUse returns how many bytes on the heap are in use.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // the second frees what sync.Pools hold
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
