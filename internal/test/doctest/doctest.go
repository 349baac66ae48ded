// Package doctest reads files of this repository for tests. It compares the numbers in the documents
// with the constants in the code. Only tests import it.
package doctest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Says fails the test unless the file, a path from the module's root, contains each of the
// sentences. In a sentence, {} stands for the value. Line breaks do not matter.
func Says(t testing.TB, value any, file string, sentences ...string) {
	t.Helper()
	said := words(Read(t, file))
	for _, sentence := range sentences {
		if !strings.Contains(sentence, "{}") {
			t.Errorf("%q has no place for the value", sentence)
		}
		if want := strings.ReplaceAll(sentence, "{}", plain(value)); !strings.Contains(said, words(want)) {
			t.Errorf("%s does not say %q", file, want)
		}
	}
}

// words returns the text with one space between any two words, and without the comment marks at the
// beginnings of lines.
func words(text string) string {
	var all []string
	for line := range strings.Lines(text) {
		all = append(all, strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "//"))...)
	}
	return strings.Join(all, " ")
}

// plain returns the value as the documents write it: 1.25 s, 10 ms, 1000.
func plain(value any) string {
	d, ok := value.(time.Duration)
	switch {
	case !ok:
		return fmt.Sprint(value)
	case d >= time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s"
	case d >= time.Millisecond:
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64) + " ms"
	default:
		return strconv.FormatInt(d.Microseconds(), 10) + " us"
	}
}

// EnvOverlay names the overlay that the tests were built with, the file that go test -overlay was
// given. It is for tests of planted bugs, which may be in scripts.
const EnvOverlay = "HOLDFAST_OVERLAY"

// Read returns the text of a file as the tests were built with it. The file is a path from the
// module's root.
func Read(t testing.TB, file string) string {
	t.Helper()
	path := filepath.Join(root(t), filepath.FromSlash(file))
	if other, ok := overlay(t)[path]; ok {
		path = other
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Glob returns the files that match the pattern, both as paths from the module's root.
func Glob(t testing.TB, pattern string) []string {
	t.Helper()
	all, err := fs.Glob(os.DirFS(root(t)), pattern)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// overlay maps the paths of the files that others replace to the paths of those.
func overlay(t testing.TB) map[string]string {
	t.Helper()
	name := os.Getenv(EnvOverlay)
	if name == "" {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list.Replace
}

// root returns the module's folder.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("doctest: no go.mod above the test")
		}
		dir = up
	}
}
