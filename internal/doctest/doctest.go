// Package doctest compares the numbers in the documents with the constants in the code. Only
// _test.go files import it.
package doctest

import (
	"fmt"
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
	text, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	said := words(string(text))
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
