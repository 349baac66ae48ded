// A bug is planted by an overlay, and the tests that are there for the bug must fail.

package planted

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/doctest"
)

// root is the module's folder.
const root = "../../.."

var (
	planted = flag.String("planted", "none", "which bugs to plant: none, virtual, all; quick: half of a sample, by HOLDFAST_TURN; torture, generated: those that the torture, and generated scenarios, must see; bundled: none, but each call goes out in a bundle")
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
	sampled, turn := 0, os.Getenv("HOLDFAST_TURN")
	n, err := strconv.Atoi(cmp.Or(turn, "0"))
	if err != nil {
		t.Fatalf("HOLDFAST_TURN=%s: %v", turn, err)
	}
	return slices.DeleteFunc(slices.Clone(bugs), func(b bug) bool {
		if b.quick {
			sampled++
		}
		return *planted == "quick" && (!b.quick || turn != "" && sampled%2 != n%2) ||
			*planted == "virtual" && b.step != virtual ||
			*in != "" && !slices.Contains(strings.Split(*in, ","), b.pkg())
	})
}

// Each bug is caught by the tests that are there for it, in their step.
func TestEachPlantedBugIsCaught(t *testing.T) {
	for _, b := range chosen(t) {
		t.Run(b.name, func(t *testing.T) {
			files := b.plant(t)
			if b.step == virtual {
				t.Parallel()
			}
			began := time.Now()
			out, err := run(t, 5*time.Minute, b.step, b.pkg(), b.tests(), files)
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

// The same tests pass if an overlay adds only a comment to each of the same files. So it is the
// bugs that the tests catch.
func TestAnOverlayWithoutABugIsNotCaught(t *testing.T) {
	if *planted == "quick" {
		t.Skip("the gate has just run them without a bug: -planted=virtual or -planted=all")
	}
	type suite struct {
		pkg  string
		step step
	}
	tests := make(map[suite][]string)
	files := make(map[suite]map[string]string)
	for _, b := range chosen(t) {
		s, file := suite{b.pkg(), b.step}, find(t, b.at).file
		tests[s] = append(tests[s], b.tests()...)
		if files[s] == nil {
			files[s] = make(map[string]string)
		}
		files[s][file] = read(t, filepath.Join(root, file)) + comment(file)
	}
	for s := range tests {
		t.Run(s.pkg+", "+s.step.String(), func(t *testing.T) {
			if out, err := run(t, 5*time.Minute, s.step, s.pkg, tests[s], files[s]); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// comment returns a comment in the language of the file.
func comment(file string) string {
	if filepath.Ext(file) == ".lua" {
		return "\n-- harmless\n"
	}
	return "\n// harmless\n"
}

// run runs some tests of a package in their step for at most patience, with files of the module
// replaced by other texts. flags are the flags of the tests.
func run(t *testing.T, patience time.Duration, step step, pkg string, tests []string, files map[string]string, flags ...string) (output string, err error) {
	t.Helper()
	tests = slices.Compact(slices.Sorted(slices.Values(tests)))
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	replaced := overlay(t, files)
	args := slices.Concat([]string{"test"}, quickBuild, []string{
		"-count=1", "-timeout=" + patience.String(),
		"-overlay=" + replaced, "-run=^(" + strings.Join(tests, "|") + ")$", "./" + pkg,
	}, flags)
	cmd := goCommand(ctx, t, pkg, args...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(cmd.Env, step.environment()...)
	cmd.Env = append(cmd.Env, doctest.EnvOverlay+"="+replaced)
	out, err := cmd.CombinedOutput()
	if text := string(out); strings.Contains(text, "[build failed]") || strings.Contains(text, "[no tests to run]") {
		t.Fatalf("%s: %v\n%s", pkg, err, text)
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
