// Package exampletest runs an example in its test.
package exampletest

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/examples/internal/embedded"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Run runs the example on an embedded Redis. The example must succeed, leave no goroutine behind,
// and print text that each of the patterns matches.
func Run(t *testing.T, example embedded.Example, patterns ...string) {
	t.Helper()
	Says(t, func(ctx context.Context, out io.Writer) error {
		return embedded.Run(ctx, out, "", example)
	}, patterns...)
}

// RunOn is Run on n embedded servers.
func RunOn(t *testing.T, n int, example embedded.ExampleOn, patterns ...string) {
	t.Helper()
	Says(t, func(ctx context.Context, out io.Writer) error {
		return embedded.RunOn(ctx, out, n, example)
	}, patterns...)
}

// Says is Run for an example that brings its own servers. Examples run in real time: on a machine
// that is busy with other things they print something else.
func Says(t *testing.T, run func(ctx context.Context, out io.Writer) error, patterns ...string) {
	t.Helper()
	redistest.RealTime(t)
	defer goleak.VerifyNone(t)
	out, err := play(t, run)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, pattern := range patterns {
		if !regexp.MustCompile(pattern).MatchString(out) {
			t.Errorf("nothing in it matches %q:\n%s", pattern, out)
		}
	}
}

// Fails runs an example that must fail, with an error that the pattern matches.
func Fails(t *testing.T, run func(ctx context.Context, out io.Writer) error, pattern string) {
	t.Helper()
	out, err := play(t, run)
	if err == nil || !regexp.MustCompile(pattern).MatchString(err.Error()) {
		t.Errorf("the error %v does not match %q:\n%s", err, pattern, out)
	}
}

func play(t *testing.T, run func(ctx context.Context, out io.Writer) error) (said string, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a longer run hangs
	defer cancel()
	var out bytes.Buffer
	err = run(ctx, &out)
	return out.String(), err
}
