// What the end of a context says about a call.

package fault

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// Over returns why ctx has ended, or nil if it has not. That is ctx's cause if it matches
// errs.Unavailable, as for a call that does not wait; otherwise ctx's error.
func Over(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errs.Unavailable) {
		return cause
	}
	return ctx.Err()
}

// Unavailable makes the error of a deadline also say that Redis could not be reached before it.
func Unavailable(end error) error {
	if errors.Is(end, context.DeadlineExceeded) && !errors.Is(end, errs.Unavailable) {
		return fmt.Errorf("%w: %w", errs.Unavailable, end)
	}
	return end
}

// Ended reports whether ctx has ended. go-redis uses ctx's deadline too, and may be the first
// to see it pass.
func Ended(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && !time.Now().Before(deadline)
}
