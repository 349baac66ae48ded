// Measuring Redisson, for comparison.

package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// Result is what one benchmark of Redisson measured: how much was done in a second,
// or how long something took.
type Result struct {
	Bench    string `json:"bench"`
	Args     string `json:"args"`
	Redisson string `json:"redisson"`

	Done      int64   `json:"done"`
	PerSecond float64 `json:"perSecond"`
	Failed    int64   `json:"failed"` // of which an exception came
	Stuck     int     `json:"stuck"`  // threads that still waited half a minute later

	Samples int     `json:"samples"`
	P50     float64 `json:"p50us"` // these in microseconds
	P99     float64 `json:"p99us"`
	Max     float64 `json:"maxus"`
}

// Bench measures that version of Redisson in a process of its own. The arguments are
// those of java/.../Bench.java: the server's address, what to measure, and how.
//
//	Bench(ctx, Newest, addr, "pairs", "lock", "16", "5000")              16 threads, 5 s
//	Bench(ctx, Newest, addr, "handoff", "lock", "5000")
//	Bench(ctx, Newest, addr, "contended", "fair", "8", "1000", "10000")  1 000 threads of 8 clients
//	Bench(ctx, Newest, addr, "semaphore", "10", "8", "1000", "10000")    10 permits
//	Bench(ctx, Newest, addr, "rw", "95", "8", "200", "10000")            95 of 100 are reads
//	Bench(ctx, Newest, addr, "latch", "8", "1000", "20")                 20 rounds
func Bench(ctx context.Context, version string, args ...string) (Result, error) {
	var r Result
	classPath, err := Build(ctx, version)
	if err != nil {
		return r, err
	}
	cmd := exec.CommandContext(ctx, "java", arguments(classPath, []string{"-Xmx2g"}, append([]string{"bench"}, args...)...)...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		return r, fmt.Errorf("interop: bench %v: %w\n%s%s", args, err, out, complaints.String())
	}
	return r, nil
}
