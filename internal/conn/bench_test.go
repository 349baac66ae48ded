// These benchmarks measure what a call costs on a real server.

package conn_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func BenchmarkRunLone(b *testing.B) {
	m := newManager(b, redistest.Server(b).Client(b))
	mustRun(b, m, newCount("k"))
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Run(b.Context(), newCount("k")); err != nil {
			b.Fatal(err)
		}
	}
}

// One operation is one call. 256 callers run calls at the same time.
func BenchmarkRun256(b *testing.B) {
	const callers = 256
	m := newManager(b, redistest.Server(b).Client(b))
	mustRun(b, m, newCount("k"))
	calls := make(chan struct{}, callers)
	var wg sync.WaitGroup
	for i := range callers {
		key := fmt.Sprint("k", i)
		wg.Go(func() {
			for range calls {
				if err := m.Run(b.Context(), newCount(key)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		calls <- struct{}{}
	}
	close(calls)
	wg.Wait()
}

func BenchmarkRunBatch100(b *testing.B) {
	m := newManager(b, redistest.Server(b).Client(b))
	mustRun(b, m, newCount("k"))
	node := nodeOf(b, m, "k")
	b.ReportAllocs()
	for b.Loop() {
		batch := make([]*conn.Call, 100)
		for i := range batch {
			batch[i] = newCount("k")
		}
		for _, err := range runBatch(b.Context(), b, m, node, batch) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
