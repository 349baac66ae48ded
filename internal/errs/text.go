// How an error reads: one prefix, one line, and nothing of Redis's own bookkeeping.

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

// Plain returns the text of err as a part of another: without the prefix, on one line,
// and without what Redis adds about the script in which it came upon an error.
func Plain(err error) string {
	text := strings.ReplaceAll(err.Error(), prefix, "")
	text = strings.ReplaceAll(text, "\n", "; ")
	return withoutScript(text)
}

// withoutScript cuts what Redis says of a script that failed: Redis 7 behind the error
// (" script: <hash>, on @user_script:15."), Redis 6 before it ("ERR Error running script
// (call to f_<hash>): @user_script:15: @user_script: 15: -").
func withoutScript(text string) string {
	if before, rest, found := strings.Cut(text, "ERR Error running script (call to f_"); found {
		_, rest, _ = strings.Cut(rest, "): ")
		for strings.HasPrefix(rest, "@user_script:") {
			_, rest, _ = strings.Cut(strings.TrimPrefix(rest, "@user_script:"), ": ")
		}
		text = before + strings.TrimPrefix(rest, "-")
	}
	for {
		before, rest, _ := strings.Cut(text, " script: ")
		hash, rest, found := strings.Cut(rest, ", on @user_script:")
		if !found || strings.Contains(hash, " ") {
			return text
		}
		text = before + strings.TrimPrefix(strings.TrimLeft(rest, "0123456789"), ".")
	}
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
