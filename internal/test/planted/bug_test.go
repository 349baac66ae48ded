// A bug is data, and some rules hold for each bug. Tests run in steps: a bug is caught in one of them, the sooner the
// better.

package planted

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bug is a patch of one declaration that breaks a promise of Holdfast.
type bug struct {
	name  string // what the patched code does wrong
	quick bool   // the bug is in the sample

	// at is where it stands: for Go the package's folder and the name of a function, type, variable
	// or constant, as go doc takes them: "internal/hold hold.finish"; for Lua the script, and the
	// name of a function in it if that is needed.
	at  string
	old string // tokens that are there exactly once; line breaks and comments do not count
	new string // what takes their place

	by   string // the folder of the tests that must catch it, and their names
	step step   // what runs these tests
}

// pkg returns the folder of the tests that must catch the bug.
func (b bug) pkg() string { return strings.Fields(b.by)[0] }

// tests returns the names of those tests.
func (b bug) tests() []string { return strings.Fields(b.by)[1:] }

// Each patch fits today's source, and the tests that are to catch the bug exist.
func TestEachBugCanBePlanted(t *testing.T) {
	seen := make(map[string]bool)
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			if seen[b.name] {
				t.Error("there are two of that name")
			}
			seen[b.name] = true
			b.plant(t)
			there := testsOf(t, b.pkg())
			for _, test := range b.tests() {
				if !slices.Contains(there, test) {
					t.Errorf("%s has no %s", b.pkg(), test)
				}
			}
			if len(b.tests()) == 0 {
				t.Error("nothing is to catch it")
			}
		})
	}
}

// named has the names of the tests in each folder that was asked for.
var named = make(map[string][]string)

// testsOf returns the names of the tests in a folder.
func testsOf(t *testing.T, pkg string) []string {
	t.Helper()
	if named[pkg] != nil {
		return named[pkg]
	}
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for line := range strings.Lines(read(t, file)) {
			if rest, ok := strings.CutPrefix(line, "func "); ok {
				name, _, _ := strings.Cut(rest, "(")
				named[pkg] = append(named[pkg], name)
			}
		}
	}
	return named[pkg]
}

// step is what runs a test. See docs/testing.md.
type step int

const (
	virtual step = iota // go test: virtual time, no server
	servers             // HOLDFAST_SERVERS=1: real servers, no bound in real time
	long                // and HOLDFAST_LONG: bounds in real time
)

func (s step) String() string { return []string{"virtual", "servers", "long"}[s] }

// environment returns the variables that run the tests of the step. A tenth of each count is enough.
func (s step) environment() []string {
	return [][]string{
		{"HOLDFAST_SERVERS=", "HOLDFAST_LONG="},
		{"HOLDFAST_SERVERS=1", "HOLDFAST_LONG="},
		{"HOLDFAST_SERVERS=1", "HOLDFAST_LONG=bounds"},
	}[s]
}
