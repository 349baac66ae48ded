// Package rapidtest plays random sequences in a synctest bubble. It is imported by
// _test.go files only.
package rapidtest

import (
	"flag"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/redistest"
)

// Check is rapid.Check in a bubble, as often as [redistest.Sequences] says. By itself
// rapid lets no more than a day pass in one go, and in a bubble that is little.
func Check(t *testing.T, sequence func(*rapid.T)) {
	t.Helper()
	redistest.Sequences(t)
	const checks = "rapid.checks"
	want, err := strconv.Atoi(flag.Lookup(checks).Value.String())
	if err != nil {
		t.Fatal(err)
	}
	for played := 0; played < want; {
		if err := flag.Set(checks, strconv.Itoa(want-played)); err != nil {
			t.Fatal(err)
		}
		before := played
		rapid.Check(timeless{t}, func(rt *rapid.T) {
			played++
			sequence(rt)
		})
		if t.Failed() || given("rapid.seed") || given("rapid.failfile") || played == before {
			break // once more would be the same
		}
	}
	if err := flag.Set(checks, strconv.Itoa(want)); err != nil {
		t.Fatal(err)
	}
}

// given reports whether the flag was.
func given(name string) bool {
	f := flag.Lookup(name)
	return f.Value.String() != f.DefValue
}

// timeless hides the test's deadline, which is not in the bubble's time.
type timeless struct{ testing.TB }
