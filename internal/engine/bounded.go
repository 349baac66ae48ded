// The time limit of calls that do not wait.

package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// TryBound is how long a call that does not wait will wait for its answer, if its context allows
// more. It is three times as long as a server may be silent before it is taken for frozen, so that
// a lost connection can be replaced within it.
const TryBound = 3 * time.Second

var errTryBound = fmt.Errorf("%w: no answer within %v", errs.Unavailable, TryBound)

// Bounded returns ctx with a timeout of TryBound, whose cause matches errs.Unavailable.
func Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, TryBound, errTryBound)
}
