// A test keeps the layers of the module: arrows point down.

package repo

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/holdfast-go/holdfast"

// layers lists the packages from the top down. A package imports only packages that stand in a
// lower row: never from its own row, never from a higher one. The comment behind a row says what
// its packages have in common.
var layers = [][]string{
	{"holdfasttest", "fence"}, // beside what programs import: for their tests, and for what they write to
	{"limiter/httplimit"},     // what programs import beside it
	{"."},                     // the only package most programs import
	{"rlock", "fairlock", "rwlock", "semaphore", "latch", "leader", "multilock", "quorum", "once", "barrier", "slots", "limiter", "shards"}, // primitives, unknown to each other
	{"lease"},             // the public vocabulary they share
	{"internal/inspect"},  // what stands at a name, whichever of them made it
	{"internal/pause"},    // that a name is paused
	{"internal/rights"},   // what a user of Redis must be allowed to do for each of them
	{"internal/lockhash"}, // what the locks that keep a hash of holders share
	{"internal/hold"},     // the life of what is held
	{"internal/engine"},   // one Client, put together from what stands below
	{"internal/line"},     // the wait loop
	{"internal/conn", "internal/pubsub", "internal/renewal", "internal/telemetry"}, // machinery, each usable without the others
	{"internal/conn/route"},                      // which server a call goes to
	{"internal/conn/server"},                     // one server
	{"internal/conn/call", "internal/conn/dial"}, // what is sent, and the connections on which
	{"internal/conn/fault"},                      // what each error of theirs requires
	{"internal/keys"},
	{"internal/errs"},
}

// floorOf returns how many rows of layers are below the row of pkg.
func floorOf(pkg string) (floor int, known bool) {
	if isProgram(pkg) {
		return len(layers), true
	}
	for i, row := range layers {
		if slices.Contains(row, pkg) {
			return len(layers) - 1 - i, true
		}
	}
	return 0, false
}

// isProgram says whether pkg is above the root: a program that uses Holdfast as a user does.
func isProgram(pkg string) bool {
	return strings.HasPrefix(pkg+"/", "examples/") || strings.HasPrefix(pkg, "cmd/")
}

// isTestOnly says whether pkg exists for tests.
func isTestOnly(pkg string) bool { return strings.HasPrefix(pkg, "internal/test/") }

// isTester says whether pkg is above the root and for tests alone: a program that is itself a test,
// or a package for the tests of users.
func isTester(pkg string) bool {
	return pkg == "cmd/holdfast-torture" || pkg == "holdfasttest"
}

// violations returns a sentence for each package without a floor and for each import that does not
// point down, sorted. imports maps each package of the module to the packages of the module that
// its non-test code imports. All of them are relative to the module.
func violations(imports map[string][]string) []string {
	var found []string
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for from, targets := range imports {
		if isTestOnly(from) {
			continue // a test package may look at any floor, because nothing stands on it
		}
		floor, known := floorOf(from)
		if !known {
			report("%s has no floor: give it a row in layers", from)
			continue
		}
		for _, to := range targets {
			below, known := floorOf(to)
			switch {
			case isTestOnly(to) && isTester(from):
				// A tester starts and breaks servers, as tests do.
			case isTestOnly(to):
				report("%s imports %s, which is for tests only", from, to)
			case !known:
				// The loop reports that package in its own turn.
			case isProgram(from) && isProgram(to):
				// Examples may share their helpers.
			case below > floor:
				report("%s imports %s: an arrow up", from, to)
			case below == floor:
				report("%s imports %s: an arrow sideways", from, to)
			}
		}
	}
	slices.Sort(found)
	return found
}

func TestArrowsPointDown(t *testing.T) {
	for _, violation := range violations(importsOfModule(t)) {
		t.Error(violation)
	}
}

// importsOfModule asks the go command which package imports which. Nested
// modules are not part of ./... and may import what they like.
func importsOfModule(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	imports := make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		paths := strings.Fields(line)
		from, ours := relative(paths[0])
		if !ours {
			t.Fatalf("go list ./... lists %s, which is not of %s", from, module)
		}
		imports[from] = nil
		for _, path := range paths[1:] {
			if to, ours := relative(path); ours {
				imports[from] = append(imports[from], to)
			}
		}
	}
	return imports
}

// relative returns the path within the module, "." for its root.
func relative(path string) (rel string, ours bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// A check that never fails proves nothing, so this test gives the check what it must find.
func TestTheCheckFindsWhatItIsFor(t *testing.T) {
	for _, want := range []string{
		"rlock imports .: an arrow up",
		"fairlock imports rlock: an arrow sideways",
		"lease imports latch: an arrow up",
		"internal/engine imports lease: an arrow up",
		"internal/conn imports internal/engine: an arrow up",
		"internal/pubsub imports internal/conn: an arrow sideways",
		"internal/errs imports internal/keys: an arrow up",
		". imports examples/tour: an arrow up",
		"examples/tour imports internal/test/redistest, which is for tests only",
		"rlock imports internal/test/redistest, which is for tests only",
	} {
		words := strings.Fields(want)
		if got := violations(map[string][]string{words[0]: {strings.TrimRight(words[2], ",:")}}); !slices.Equal(got, []string{want}) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	placeless := map[string][]string{"rlock": {"internal/util", "."}, "internal/util": nil}
	want := []string{"internal/util has no floor: give it a row in layers", "rlock imports .: an arrow up"}
	if got := violations(placeless); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
