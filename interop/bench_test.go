package interop

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// TestTheBenchmarksOfRedissonRun: for a moment, each that there is at full counts.
func TestTheBenchmarksOfRedissonRun(t *testing.T) {
	machines.of(t, Newest) // left out without Java
	addr := redistest.Server(t).Addr()
	benches := []string{"pairs lock 4 2000", "latch 2 20 4"}
	if os.Getenv("HOLDFAST_LONG") == "1" {
		benches = append(benches, "handoff lock 2000", "contended fair 2 20 2000", "semaphore 3 2 20 2000",
			"rw 95 2 20 2000")
	}
	for _, bench := range benches {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		began := time.Now()
		r, err := Bench(ctx, Newest, append([]string{addr}, strings.Fields(bench)...)...)
		if err != nil {
			t.Fatal(err)
		}
		if r.Redisson != Newest || r.PerSecond <= 0 && r.P50 <= 0 || r.Failed > 0 || r.Stuck > 0 {
			t.Errorf("%s: %+v", bench, r)
		}
		t.Logf("%s: %+v, in %v", bench, r, time.Since(began))
	}
}
