// Exit codes: what the holdfast command returns to the program that started it.

package cli

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/child"
)

// The codes of the command itself. They are those of sysexits.h, and of env(1) and the shells, so that few
// programs use them for something else.
const (
	codeFailed      = 1  // anything without a code of its own
	codeUsage       = 64 // wrong flags or arguments
	codeUnavailable = 69 // Redis could not be reached, or did not answer
	codeBusy        = 75 // another holds it
	codeLost        = 76 // the lock was lost while the program ran, or was held for --at-most
	codeDenied      = 77 // Redis does not allow it
)

const codesHelp = `Exit codes:
  0    done; of run, leader and attach: what the program exits with
  1    failed
  64   wrong flags or arguments
  69   Redis could not be reached, or did not answer
  75   another holds it (see --busy-code)
  76   the lock was lost while the program ran, or was held for --at-most
  77   Redis does not allow it
  126  the program could not be run
  127  the program was not found
  128+n  ended by signal n, the program or, before it began, holdfast itself`

// exit is an error with an exit code of its own.
type exit struct {
	code int
	err  error // nil: nothing is printed
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usage returns err as one of wrong flags or arguments.
func usage(err error) error { return &exit{codeUsage, err} }

// codeOf returns the exit code for err, and whether it needs no message.
func codeOf(err error) (code int, quiet bool) {
	var own *exit
	var unrun *child.NotStarted
	switch {
	case err == nil:
		return 0, true
	case errors.As(err, &own):
		return own.code, own.err == nil
	case errors.As(err, &unrun):
		return unrun.Code(), false
	case errors.Is(err, holdfast.ErrBadArgument):
		return codeUsage, false
	case errors.Is(err, holdfast.ErrDenied):
		return codeDenied, false
	case errors.Is(err, holdfast.ErrUnavailable): // it was held, perhaps, when Redis answered last
		return codeUnavailable, false
	case errors.Is(err, holdfast.ErrBusy):
		return codeBusy, false
	case errors.Is(err, context.DeadlineExceeded):
		return codeUnavailable, false
	case errors.Is(err, holdfast.ErrLost), errors.Is(err, holdfast.ErrMaxHold):
		return codeLost, false
	}
	return codeFailed, false
}
