package redistest

import (
	"slices"
	"testing"
	"time"
)

func TestUndisturbed(t *testing.T) {
	const never, always = time.Hour, 0
	for _, tc := range []struct {
		name   string
		still  time.Duration
		passes int // the try that passes
		tries  int
		failed bool
	}{
		{"what passes is played once", always, 1, 1, false},
		{"what fails on a machine that ran fails", never, 2, 1, true},
		{"what fails on one that stood still is played again", always, 3, 3, false},
		{"but not for ever", always, 100, undisturbedTries, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			test, tries := &attempt{TB: t}, 0
			test.play(func(t testing.TB) {
				Undisturbed(t, tc.still, func(t testing.TB) {
					if tries++; tries < tc.passes {
						t.Fatal("not yet")
					}
				})
			})
			if tries != tc.tries || test.failed != tc.failed {
				t.Errorf("played %d times, failed: %t; want %d, %t", tries, test.failed, tc.tries, tc.failed)
			}
		})
	}
}

func TestUndisturbedDoesNotExcuseAll(t *testing.T) {
	test, tries := &attempt{TB: t}, 0
	test.play(func(t testing.TB) {
		Undisturbed(t, 0, func(t testing.TB) {
			tries++
			Inexcusable(t, "two are inside")
		})
	})
	if tries != 1 || !test.failed {
		t.Errorf("played %d times, failed: %t; want once, true", tries, test.failed)
	}
}

// The clean-ups of an attempt run before the next attempt, the last clean-up first, with the
// attempt's context ended. They also run after a clean-up that fails.
func TestUndisturbedCleansUp(t *testing.T) {
	var order []string
	try := 0
	Undisturbed(t, 0, func(t testing.TB) {
		try++
		order = append(order, "play")
		ctx := t.Context()
		t.Cleanup(func() {
			if ctx.Err() != nil {
				order = append(order, "first")
			}
		})
		t.Cleanup(func() {
			order = append(order, "second")
			if try == 1 {
				t.FailNow()
			}
		})
	})
	if want := []string{"play", "second", "first", "play", "second", "first"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
	test := &attempt{TB: t}
	test.play(func(t testing.TB) {
		Undisturbed(t, 0, func(t testing.TB) { t.Skip("not here") })
	})
	if !test.skipped {
		t.Error("what is skipped is not")
	}
}
