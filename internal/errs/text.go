// How an error reads: one prefix, and one line.

package errs

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const prefix = "holdfast: "

// wrapped is an error with what was being done.
type wrapped struct {
	op  string
	err error
}

// Wrap adds to err what was being done. The text has one prefix, however many errors of
// Holdfast are inside, and is one line.
func Wrap(op string, err error) error { return &wrapped{op, err} }

func (w *wrapped) Error() string { return prefix + w.op + ": " + Plain(w.err) }

func (w *wrapped) Unwrap() error { return w.err }

// Bare returns the error that Wrap has made err of, or err where it has not.
func Bare(err error) error {
	if w, ok := err.(*wrapped); ok {
		return w.err
	}
	return err
}

// Plain returns the text of err as a part of another: without the prefix, and on one line.
func Plain(err error) string {
	text := strings.ReplaceAll(err.Error(), prefix, "")
	return strings.ReplaceAll(text, "\n", "; ")
}

// Ended adds to the error of a wait that ctx ended the cause that was given to ctx, if
// there is one.
func Ended(ctx context.Context, err error) error {
	end, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || end == nil || !errors.Is(err, end) || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
