// Package rapidtest plays random sequences in a synctest bubble. Only _test.go files import it.
package rapidtest

import (
	"flag"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Check is [CheckOneIn], with one in ten.
func Check(t *testing.T, sequence func(*rapid.T)) {
	t.Helper()
	CheckOneIn(t, 10, sequence)
}

// CheckOneIn is rapid.Check in a bubble. It plays as many sequences as [redistest.SequencesOneIn] says.
func CheckOneIn(t *testing.T, n int, sequence func(*rapid.T)) {
	t.Helper()
	Rounds(t, n, func(check func(testing.TB, func(*rapid.T))) { check(t, sequence) })
}

// Rounds plays as many sequences as [redistest.SequencesOneIn] says, in rounds: rapid itself lets no more than a day pass in
// one go, and in a bubble a day is short. Each round calls check once, with the test of its own bubble if it has one.
func Rounds(t *testing.T, n int, round func(check func(testing.TB, func(*rapid.T)))) {
	t.Helper()
	redistest.SequencesOneIn(t, n)
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
		round(func(t testing.TB, sequence func(*rapid.T)) {
			rapid.Check(timeless{t}, func(rt *rapid.T) {
				played++
				sequence(rt)
			})
		})
		if t.Failed() || given("rapid.seed") || given("rapid.failfile") || played == before {
			break // another round would be the same
		}
	}
	if err := flag.Set(checks, strconv.Itoa(want)); err != nil {
		t.Fatal(err)
	}
}

// given reports whether the flag was given.
func given(name string) bool {
	f := flag.Lookup(name)
	return f.Value.String() != f.DefValue
}

// timeless hides the test's deadline, which is not in the bubble's time.
type timeless struct{ testing.TB }

// Moments lets 0.1 to 4 seconds pass: a step of a sequence.
func Moments(rt *rapid.T) {
	time.Sleep(time.Duration(rapid.IntRange(1, 40).Draw(rt, "ds")) * 100 * time.Millisecond)
}
