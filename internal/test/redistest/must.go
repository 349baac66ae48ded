// An error or a value that a test does not expect ends it, or fails it, in one line.

package redistest

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Must ends the test unless err is nil. It is for the test's own goroutine.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Check fails the test unless err is nil, and lets it go on.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Is fails the test unless err is target. what says what has returned it.
func Is(t testing.TB, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: %v, want %v", what, err, target)
	}
}

// Equal fails the test in these words, of which got is the first value, unless got is want.
func Equal[T comparable](t testing.TB, got, want T, format string, more ...any) {
	t.Helper()
	if got != want {
		t.Errorf(format, append([]any{got}, more...)...)
	}
}

// Err returns the error of a call that returns a value too.
func Err[T any](_ T, err error) error { return err }

// Within returns a context that ends after d, and with the test.
func Within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
