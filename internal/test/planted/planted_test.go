// A bug is planted by an overlay, and the tests that are there for the bug must fail.

package planted

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

// root is the module's folder.
const root = "../../.."

var (
	planted = flag.String("planted", "none", "which bugs to plant: none, virtual, all; quick: a sample; torture, generated: those that the torture, and generated scenarios, must see; bundled: none, but each call goes out in a bundle")
	in      = flag.String("in", "", "only the bugs that tests of these packages catch: their folders, separated by commas")
)

// chosen returns the bugs that the flags name.
func chosen(t *testing.T) []bug {
	t.Helper()
	switch *planted {
	case "quick", "virtual", "all":
	case "none", "torture", "generated", "bundled":
		t.Skip("none are planted: -planted=quick, -planted=virtual or -planted=all")
	default:
		t.Fatalf("-planted=%s: want none, quick, virtual, all, torture, generated or bundled", *planted)
	}
	return slices.DeleteFunc(slices.Clone(bugs), func(b bug) bool {
		return *planted == "quick" && !b.quick ||
			*planted == "virtual" && b.step != virtual ||
			*in != "" && !slices.Contains(strings.Split(*in, ","), b.pkg())
	})
}

// Each bug is caught by the tests that are there for it, in their step. Without it they pass.
func TestEachPlantedBugIsCaught(t *testing.T) {
	all := chosen(t)
	together := slices.DeleteFunc(slices.Clone(all), func(b bug) bool { return !b.canSwitch(t) })
	build := switches(t, together)
	if *planted != "quick" { // the gate has just run them without a bug
		passWithoutABug(t, build, together)
	}
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) {
			run := build.run
			if !b.canSwitch(t) {
				run = runAlone
			}
			if b.step == virtual {
				t.Parallel()
			}
			began := time.Now()
			out, err := run(t, 5*time.Minute, b.step, b, b.pkg(), b.tests())
			if err == nil {
				t.Fatalf("%s: %v pass with it, %s", b.at, b.tests(), b.step)
			}
			caught := failed(out)
			if len(caught) == 0 {
				t.Fatalf("no test of %s has failed, but: %v\n%s", b.pkg(), err, out)
			}
			if caught := strings.Join(caught, ", "); strings.Contains(caught, timedOut) {
				t.Fatalf("caught by a wait that never ends alone (%s): the tests need a sharper look", caught)
			}
			t.Logf("caught in %.1f s by %s", time.Since(began).Seconds(), strings.Join(caught, ", "))
		})
	}
}

// passWithoutABug runs the same tests with every bug switched off.
func passWithoutABug(t *testing.T, build switched, bugs []bug) {
	t.Helper()
	type suite struct {
		pkg  string
		step step
	}
	tests := make(map[suite][]string)
	for _, b := range bugs {
		s := suite{b.pkg(), b.step}
		tests[s] = append(tests[s], b.tests()...)
	}
	for s := range tests {
		t.Run("none, "+s.pkg+", "+s.step.String(), func(t *testing.T) {
			if out, err := build.run(t, 5*time.Minute, s.step, bug{}, s.pkg, tests[s]); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// runAlone runs some tests of a package in their step for at most patience, in a build that has only this bug. flags
// are the flags of the tests.
func runAlone(t *testing.T, patience time.Duration, step step, b bug, pkg string, tests []string, flags ...string) (output string, err error) {
	t.Helper()
	replaced := overlay(t, b.plant(t))
	warmUp(t, pkg)
	ctx, cancel := context.WithTimeout(t.Context(), patience+15*time.Minute) // which ends the go command only: its tests end by patience
	defer cancel()
	args := slices.Concat([]string{"test"}, quickBuild, []string{
		"-count=1", "-timeout=" + patience.String(), "-overlay=" + replaced, "-run=" + pattern(tests), "./" + pkg,
	}, flags)
	cmd := goCommand(ctx, t, args...)
	cmd.Env = append(cmd.Env, doctest.EnvOverlay+"="+replaced)
	return outputOf(t, cmd, step)
}

// pattern returns the pattern of these tests.
func pattern(tests []string) string {
	return "^(" + strings.Join(slices.Compact(slices.Sorted(slices.Values(tests))), "|") + ")$"
}

// outputOf runs tests in their step, and returns what they print.
func outputOf(t *testing.T, cmd *exec.Cmd, step step) (string, error) {
	t.Helper()
	cmd.WaitDelay = time.Second
	cmd.Env = append(cmd.Env, step.environment()...)
	out, err := cmd.CombinedOutput()
	if text := string(out); strings.Contains(text, "[build failed]") || strings.Contains(text, "no tests to run") {
		t.Fatalf("%s: %v\n%s", cmd, err, text)
	}
	return string(out), err
}

// overlay writes the files and returns the name of the file that tells the go command of them.
func overlay(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	replace := make(map[string]string)
	for file, content := range files {
		original, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(dir, fmt.Sprintf("%d%s", len(replace), filepath.Ext(file)))
		if err := os.WriteFile(copied, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[original] = copied
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, list, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// timedOut is what the go command prints when a test takes too long.
const timedOut = "test timed out"

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)|^panic: (.+)$`)

// failed returns the names of the tests that have failed, and what ended the run early, for example
// a wait that never ends.
func failed(output string) []string {
	var names []string
	for _, match := range failure.FindAllStringSubmatch(output, -1) {
		names = append(names, match[1]+match[2])
	}
	return names
}
