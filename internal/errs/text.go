// The text of an error: one prefix, on one line.

package errs

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const prefix = "holdfast: "

type wrapped struct {
	op  string
	err error
}

// Wrap adds to err the operation that failed. The text has the prefix once, however many errors
// of Holdfast are inside, and is one line.
func Wrap(op string, err error) error { return &wrapped{op, err} }

// Call adds to err the operation, and the kind and the name of what it was done to.
func Call(op, kind, name string, err error) error { return Wrap(op+" "+kind+" "+Quote(name), err) }

// quoted is how many bytes of a name an error shows.
const quoted = 64

// Quote returns the name of a synchronizer as errors show it: quoted, and cut after 64 bytes.
func Quote(name string) string {
	if len(name) > quoted {
		return fmt.Sprintf("%q… (%d bytes)", name[:quoted], len(name))
	}
	return fmt.Sprintf("%q", name)
}

func (w *wrapped) Error() string { return prefix + w.op + ": " + Plain(w.err) }

func (w *wrapped) Unwrap() error { return w.err }

// Bare undoes Wrap: it returns the error that err wraps, or err itself if Wrap did not make it.
func Bare(err error) error {
	if w, ok := err.(*wrapped); ok { //nolint:errorlint // it undoes one Wrap, not those further in
		return w.err
	}
	return err
}

// Within returns err for use inside an error of Call about the same thing: if err names that thing
// itself, without its operation and its name.
func Within(kind, name string, err error) error {
	w, ok := err.(*wrapped) //nolint:errorlint // it undoes one Call, not those further in
	if ok && strings.HasSuffix(w.op, " "+kind+" "+Quote(name)) {
		return w.err
	}
	return err
}

// Plain returns the text of err for use inside another text: without the prefix, and on one
// line.
func Plain(err error) string {
	text := strings.ReplaceAll(err.Error(), prefix, "")
	return strings.ReplaceAll(text, "\n", "; ")
}

// Ended adds the cause with which ctx was cancelled to err, the error of a wait that ctx ended.
// It returns err unchanged if ctx did not end it, or if err matches the cause already.
func Ended(ctx context.Context, err error) error {
	end, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || end == nil || !errors.Is(err, end) || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
