// Bugs that random programs must find by themselves: no test that was written for them
// runs.

package mutationtest

import (
	"strings"
	"testing"
	"time"
)

// programsPlayed is how many programs have to be enough.
const programsPlayed = "20000"

var programmedBugs = []string{
	"the heir of a fixed lease is not renewed",
	"a renewal that was overtaken shortens a deadline",
}

func TestRandomProgramsFindTheBug(t *testing.T) {
	if *planted != "programs" {
		t.Skip("no programs are played: -planted=programs")
	}
	for _, name := range programmedBugs {
		t.Run(name, func(t *testing.T) {
			b := called(t, name)
			began := time.Now()
			out, err := run(t, 14*time.Minute, ".", []string{"TestRandomPrograms"}, map[string]string{b.file: b.patched(t)},
				"-rapid.checks="+programsPlayed, "-rapid.shrinktime=1s", "-rapid.nofailfile")
			if err == nil || !strings.Contains(out, "--- FAIL: TestRandomPrograms") {
				t.Fatalf("%s: %s programs pass with it: %v\n%s", b.file, programsPlayed, err, out)
			}
			t.Logf("found in %.0f s", time.Since(began).Seconds())
		})
	}
}
