// Big tests run their full counts at night and a tenth of them otherwise. They run less under the
// race detector if they spend all of their time working.

package redistest

import (
	"flag"
	"os"
	"strconv"
	"sync"
	"testing"
)

// Count returns full when HOLDFAST_LONG=1, and otherwise a tenth of it, at
// least 1.
func Count(t testing.TB, full int) int {
	t.Helper()
	return part(full, 10)
}

// CountOfWork is Count for a loop that keeps every core busy. Under the race detector it returns a
// fiftieth: the detector looks at each access and not at the clock, so the first rounds already
// show it what all rounds would.
func CountOfWork(t testing.TB, full int) int {
	t.Helper()
	if RaceDetector {
		return part(full, 50)
	}
	return part(full, 10)
}

// Sequences is [SequencesOneIn], with one in ten.
func Sequences(t testing.TB) {
	t.Helper()
	SequencesOneIn(t, 10)
}

// SequencesOneIn makes rapid.Check play 1 000 sequences in t when HOLDFAST_LONG=1, otherwise one in n of them, and
// half as many under the race detector. If -rapid.checks is given, it wins.
func SequencesOneIn(t testing.TB, n int) {
	t.Helper()
	const checks = "rapid.checks"
	f := flag.Lookup(checks)
	if f == nil {
		t.Fatal("redistest: a test of sequences that does not use rapid")
		return
	}
	if f.Value.String() != f.DefValue {
		return
	}
	if RaceDetector {
		n *= 2
	}
	if err := flag.Set(checks, strconv.Itoa(part(1000, n))); err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(func() { _ = flag.Set(checks, f.DefValue) })
}

// Together makes n tests that call t.Parallel run at a time, rather than one for each core. It
// is for packages whose parallel tests wait for real time. The flag -parallel wins. Call it
// before [Main].
func Together(n int) {
	testing.Init()
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err) // there is such a flag
	}
}

// Parallel is t.Parallel for helpers that a test may call more than once.
func Parallel(t *testing.T) {
	t.Helper()
	if _, twice := parallel.LoadOrStore(t, true); !twice {
		t.Cleanup(func() { parallel.Delete(t) })
		t.Parallel()
	}
}

var parallel sync.Map // the tests that have called Parallel

func part(full, divisor int) int {
	if os.Getenv(envLong) == "1" {
		return full
	}
	return max(1, full/divisor)
}
