// Generated scenarios must find these bugs by themselves: no test that was written for one of the
// bugs runs.

package planted

import (
	"strings"
	"testing"
	"time"
)

// generator is a test that makes scenarios. Its flags say how many.
type generator struct {
	pkg, test string
	flags     []string
}

// The bugs that random programs have to find need thousands of them.
var (
	programs = generator{"internal/test/programs", "TestRandomPrograms", []string{"-rapid.checks=60000", "-rapid.shrinktime=1s", "-rapid.nofailfile"}}
	queues   = generator{"internal/test/programs", "TestRandomQueues", []string{"-rapid.checks=40000", "-rapid.shrinktime=1s", "-rapid.nofailfile"}}
	slots    = generator{"rwlock", "TestRandomSlots", []string{"-slots=4000"}}
	quorums  = generator{"quorum", "TestQuorum_Histories", []string{"-rapid.checks=20000", "-rapid.shrinktime=1s", "-rapid.nofailfile"}}
)

var generatedBugs = []struct {
	bug string // its name in bugs
	by  generator
}{
	{"the heir of a fixed lease is not renewed", programs},
	{"a renewal that was overtaken shortens a deadline", programs},
	{"a waiter that comes late into its line is not nudged", queues},
	{"a key that has not come yet with its slot is taken for one that ran out", slots},
	{"a server that another quorum began with counts at once", quorums},
}

func TestAGeneratorFindsTheBug(t *testing.T) {
	if *planted != "generated" {
		t.Skip("nothing is generated: -planted=generated")
	}
	for _, g := range generatedBugs {
		t.Run(g.bug, func(t *testing.T) {
			b := called(t, g.bug)
			began := time.Now()
			out, err := runAlone(t, 30*time.Minute, long, b, g.by.pkg, []string{g.by.test}, g.by.flags...)
			if err == nil || !strings.Contains(out, "--- FAIL: "+g.by.test) {
				t.Fatalf("%s passes with it: %v\n%s", g.by.test, err, out)
			}
			t.Logf("found in %.0f s by %s\n%.1000s", time.Since(began).Seconds(), g.by.test, out)
		})
	}
}
