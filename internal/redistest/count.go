// How big a big test is: full counts at night, a tenth of them in CI, and less
// under the race detector where all of the time is work.

package redistest

import (
	"flag"
	"os"
	"strconv"
	"testing"
)

// Count returns full when HOLDFAST_LONG=1, and otherwise a tenth of it, at
// least 1.
func Count(t testing.TB, full int) int {
	t.Helper()
	return part(full, 10)
}

// CountOfWork is Count for a loop that keeps every core busy. Under the race
// detector it is a fiftieth: the detector looks at each access, not at the clock,
// and sees in the first rounds what it sees in all of them.
func CountOfWork(t testing.TB, full int) int {
	t.Helper()
	if raceDetector {
		return part(full, 50)
	}
	return part(full, 10)
}

// Sequences has rapid.Check play 1 000 sequences in t, a twentieth of them under
// the race detector unless HOLDFAST_LONG=1, and as many as -rapid.checks says if it is
// given.
func Sequences(t testing.TB) {
	t.Helper()
	const checks = "rapid.checks"
	f := flag.Lookup(checks)
	if f == nil {
		t.Fatal("redistest: a test of sequences that does not use rapid")
	}
	if f.Value.String() != f.DefValue {
		return
	}
	n := 1000
	if raceDetector {
		n = part(n, 20)
	}
	if err := flag.Set(checks, strconv.Itoa(n)); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(func() { _ = flag.Set(checks, f.DefValue) })
}

// Together has n tests that call t.Parallel run at a time, rather than one for
// each core: for packages whose parallel tests wait for real time. -parallel wins.
// It is called before [Main].
func Together(n int) {
	testing.Init()
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err) // there is such a flag
	}
}

func part(full, divisor int) int {
	if os.Getenv("HOLDFAST_LONG") == "1" {
		return full
	}
	return max(1, full/divisor)
}
