// A bug is data, and some rules hold for each bug.

package planted

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bug is a patch of one file that breaks a promise of Holdfast.
type bug struct {
	name string // what the patched code does wrong
	file string // its path in the module
	old  string // a text that the file contains exactly once
	new  string

	pkg   string   // the folder of the tests that must catch it
	tests []string // the names of those tests
	quick bool     // the bug is in the sample
}

// source returns the file without the bug.
func (b bug) source(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, b.file))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// patched returns the file with the bug.
func (b bug) patched(t *testing.T) string {
	t.Helper()
	source := b.source(t)
	if n := strings.Count(source, b.old); n != 1 {
		t.Fatalf("%s has %d times, want once:\n%s", b.file, n, b.old)
	}
	return strings.Replace(source, b.old, b.new, 1)
}

// Each patch fits today's source, and the tests that are to catch the bug exist.
func TestEachBugCanBePlanted(t *testing.T) {
	seen := make(map[string]bool)
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			if seen[b.name] {
				t.Error("there are two of that name")
			}
			seen[b.name] = true
			if b.patched(t) == b.source(t) {
				t.Error("the patch changes nothing")
			}
			there := testsOf(t, b.pkg)
			for _, test := range b.tests {
				if !slices.Contains(there, test) {
					t.Errorf("%s has no %s", b.pkg, test)
				}
			}
			if len(b.tests) == 0 {
				t.Error("nothing is to catch it")
			}
		})
	}
}

// testsOf returns the names of the tests in a folder.
func testsOf(t *testing.T, pkg string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(source)) {
			if rest, ok := strings.CutPrefix(line, "func "); ok {
				name, _, _ := strings.Cut(rest, "(")
				names = append(names, name)
			}
		}
	}
	return names
}
