//go:build !race

// What a lock costs in memory: locked and released, and while it is held. The race
// detector keeps books of its own, which would count.

package holdfast_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// pairAllocations is the most allocations that locking and releasing an uncontended
// Mutex may make, go-redis's own included. Allocations are exact where times are not, so
// this is where it shows that the path of every lock has grown. Lower it when they become
// fewer.
const pairAllocations = 8

// heldBytes is the most heap that a held renewed lock may take before Context is
// called: its name, the Mutex, the Lease and all that renews it.
const heldBytes = 400

// The uncontended pair makes no more allocations than it did.
func TestMemory_UncontendedPair(t *testing.T) {
	server := redistest.Server(t)
	allocations := func(options ...holdfast.Option) float64 {
		client := holdfast.New(server.Client(t), options...)
		defer client.Close()
		m := client.Mutex(name)
		return testing.AllocsPerRun(1000, func() {
			l, err := m.Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
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
	lockMany(t, client, "first", make([]*lease.Lease, 64)) // connections, wheel, goroutines
	leases := make([]*lease.Lease, count)

	goroutines, before := runtime.NumGoroutine(), heapInUse()
	lockMany(t, client, "order", leases)
	perLease := float64(heapInUse()-before) / count
	more := runtime.NumGoroutine() - goroutines
	t.Logf("%.0f B a lease, %d goroutines more", perLease, more)
	if perLease > heldBytes {
		t.Errorf("%.0f B a lease, want at most %d", perLease, heldBytes)
	}
	if more > 8 { // such as those that renew, of which there is one per server
		t.Errorf("%d goroutines more, for %d leases", more, count)
	}
	runtime.KeepAlive(leases)
}

// lockMany locks a name that begins so for each place in leases.
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
	runtime.GC() // what sync.Pools hold goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
