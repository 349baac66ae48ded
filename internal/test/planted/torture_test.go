// The torture must find these bugs by itself: no test that was written for one of the bugs runs.

package planted

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// tortured is a bug, together with the run of the torture that must find it.
type tortured struct {
	bug    string // its name in bugs
	args   string
	faults string // the only ones, if it is not empty
	says   string // a pattern that one of the violations matches
}

// Each of these bugs once survived a run of the torture as it was then. Where a bug needs a fault that meets one
// certain request, short pauses make that likely. The barrier's row needs many such faults: each party that gave up
// before it knew whether it had arrived explains one that is missing, and some do so in each second.
var torturedBugs = []tortured{
	{"a release tells nobody", "-topology single -for 20s", "", "hand-overs took more than"},
	{"a lease is not lost at its deadline while Redis is out of reach", "-topology single -for 20s", "", "told of a loss"},
	{"a lease is not renewed", "-topology single -for 20s", "", "no fault explains it"},
	{"a release frees whoever holds the lock", "-topology single -kinds mutex -for 20s", "reply lost", "overlap"},
	{"a fair lock goes to the waiter that came last", "-topology single -for 20s", "", "which is fair"},
	{"a cancelled acquire is not cleaned up after", "-topology single -for 20s", "", "which nobody had|an owner that no lane knows"},
	{"a late request is executed", "-topology single -kinds mutex -for 40s -pauses 0.3", "request late", "an owner that no lane knows"},
	{"the deadline counts from the reply", "-topology single -for 90s", "reply late", "more than Redis would give it|never told of a loss"},
	{"a grant that too few replicas have counts", "-topology sentinel -for 60s", "replicas shut out", "overlap|is illegal"},
	{"a server that has lost its data counts", "-topology quorum -for 120s -width 4 -pauses 0.3", "others emptied", "overlap|is illegal"},
	{"the work's context outlives its lease", "-topology single -kinds leader -for 20s", "", "told of a loss"},
	{"a result is kept for no longer than the lease", "-topology single -kinds once -for 20s", "", "and again by"},
	{"a cohort has no end", "-topology single -for 20s", "", "turns in the crowd"},
	{"a member of shards counts as dead before its lease is over", "-topology single -kinds shards -for 20s", "", "overlap on shards"},
	{"a generation that has broken counts as tripped", "-topology single -kinds barrier -for 20s", "", "only .* parties were told"},
	{"the last arrival, sent again, arrives in the next generation", "-topology single -kinds barrier -for 20s -pauses 0.1", "reply lost", "only .* parties were told"},
}

// The torture finds each bug, with a seed that anyone can use.
func TestTheTortureSeesTheBug(t *testing.T) {
	if *planted != "torture" {
		t.Skip("the torture is not run: -planted=torture")
	}
	for _, c := range torturedBugs {
		t.Run(c.bug, func(t *testing.T) {
			b := called(t, c.bug)
			began := time.Now()
			out, err := torture(t, c.args, c.faults, b.plant(t))
			if err == nil {
				t.Fatalf("%s: the torture passes with it", b.at)
			}
			if !regexp.MustCompile(`(?m)^- .*(` + c.says + `)`).MatchString(out) {
				t.Fatalf("no violation says %q: %v\n%s", c.says, err, out)
			}
			t.Logf("seen in %.0f s", time.Since(began).Seconds())
		})
	}
}

// called returns the bug with that name.
func called(t *testing.T, name string) bug {
	t.Helper()
	i := slices.IndexFunc(bugs, func(b bug) bool { return b.name == name })
	if i < 0 {
		t.Fatal("there is no such bug")
	}
	return bugs[i]
}

// torture runs the torture with files of the module replaced by other texts.
func torture(t *testing.T, args, faults string, files map[string]string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	line := strings.Fields("run -overlay=" + overlay(t, files) + " ./cmd/holdfast-torture -quiet -seed 7 " + args)
	if faults != "" {
		line = append(line, "-faults", faults)
	}
	warmUp(t, "cmd/holdfast-torture")
	out, err := goCommand(ctx, t, line...).CombinedOutput()
	if !strings.Contains(string(out), "# Torture: ") {
		t.Fatalf("it has not run: %v\n%s", err, out)
	}
	return string(out), err
}
