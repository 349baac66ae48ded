// What other packages ask about the error of a call.

package conn

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/conn/fault"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Typed adds the matching sentinel to an error of a client made by Dial, as Run does. Nobody tries again after it, so
// what is no answer of a server matches errs.Unavailable.
func Typed(err error) error {
	err = fault.Typed(err, "")
	for _, known := range []error{errs.Unavailable, context.Canceled, context.DeadlineExceeded} {
		if fault.IsReply(err) || errors.Is(err, known) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", errs.Unavailable, err)
}

// Answered reports whether err, the error of a call that was sent once, is a server's answer.
// Then the connection is whole, and another call may succeed.
func Answered(err error) bool { return fault.IsReply(err) }

// Mendable reports whether an operator can mend the cause of a Run's error: rights, a password, a
// certificate, memory, a disk.
func Mendable(err error) bool { return fault.Mendable(err) }

// LacksCommand reports whether a server has answered that it does not have a command.
func LacksCommand(err error) bool { return fault.LacksCommand(err) }
