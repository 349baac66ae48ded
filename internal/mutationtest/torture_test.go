// Bugs that the torture must see by itself: no test that was written for them runs.

package mutationtest

import (
	"context"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// tortured is a bug, and the run of the torture that must see it.
type tortured struct {
	bug  string // its name in bugs
	args string
	says string // in a violation
}

// Each of them has survived a run of the torture as that was once.
var torturedBugs = []tortured{
	{"a release tells nobody", "-topology single -for 20s", "hand-overs took more than"},
	{"a lease is not lost at its deadline while Redis is out of reach", "-topology single -for 20s", "told of a loss"},
	{"a lease is not renewed", "-topology single -for 20s", "no fault explains it"},
	{"a release frees whoever holds the lock", "-topology single -for 60s", "overlap|no fault explains it"},
	{"a fair lock goes to the waiter that came last", "-topology single -for 20s", "which is fair"},
	{"a cancelled acquire is not cleaned up after", "-topology single -for 20s", "which nobody had|an owner that no lane knows"},
	{"a late acquire is executed", "-topology single -for 20s -faults 'request late'", "an owner that no lane knows"},
	{"the deadline counts from the reply", "-topology single -for 60s", "more than Redis would give it"},
	{"a grant that too few replicas have counts", "-topology sentinel -for 60s -faults 'replicas shut out'", "overlap"},
	{"a server that has lost its data counts", "-topology quorum -for 60s -faults 'others emptied'", "overlap"},
	{"a cohort has no end", "-topology single -for 20s", "turns in the crowd"},
}

// Each bug is seen by the torture, with a seed that anyone can use.
func TestTheTortureSeesTheBug(t *testing.T) {
	if *planted != "torture" {
		t.Skip("the torture is not run: -planted=torture")
	}
	for _, c := range torturedBugs {
		t.Run(c.bug, func(t *testing.T) {
			b := called(t, c.bug)
			began := time.Now()
			out, err := torture(t, c.args, map[string]string{b.file: b.patched(t)})
			if err == nil {
				t.Fatalf("%s: the torture passes with it", b.file)
			}
			if !regexp.MustCompile(`(?m)^- .*(` + c.says + `)`).MatchString(out) {
				t.Fatalf("no violation says %q: %v\n%s", c.says, err, out)
			}
			t.Logf("seen in %.0f s", time.Since(began).Seconds())
		})
	}
}

// called returns the bug of that name.
func called(t *testing.T, name string) bug {
	t.Helper()
	i := slices.IndexFunc(bugs, func(b bug) bool { return b.name == name })
	if i < 0 {
		t.Fatal("there is no such bug")
	}
	return bugs[i]
}

// torture runs the torture with files of the module replaced by others.
func torture(t *testing.T, args string, files map[string]string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	line := "go run -overlay=" + overlay(t, files) + " ./cmd/holdfast-torture -quiet -seed 7 " + args
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if !strings.Contains(string(out), "# Torture: ") {
		t.Fatalf("it has not run: %v\n%s", err, out)
	}
	return string(out), err
}
