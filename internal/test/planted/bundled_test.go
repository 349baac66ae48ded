// The suites pass if every call that may go out in a bundle does so, also alone. Usually that takes
// several callers at the same moment, which few tests have.

package planted

import (
	"testing"
	"time"
)

// inBundles are the suites that ask nothing about the script by which a call runs: the properties,
// lost and late replies, rights, short memory, keys of another type, failovers and moving slots.
var inBundles = []string{
	"internal/test/programs",
	"internal/test/faults",
	"internal/test/conformance",
	"semaphore",
}

func TestEachSuitePassesInBundles(t *testing.T) {
	if *planted != "bundled" {
		t.Skip("no suite is run: -planted=bundled")
	}
	always := bug{at: "internal/conn/call MinBundle", old: "MinBundle = 3", new: "MinBundle = 1"}
	for _, pkg := range inBundles {
		t.Run(pkg, func(t *testing.T) {
			began := time.Now()
			out, err := runAlone(t, 14*time.Minute, long, always, pkg, []string{"Test.*"})
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("%.0f s", time.Since(began).Seconds())
		})
	}
}
