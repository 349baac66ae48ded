// Calls that do not wait.

package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// TryBound is how long a call that does not wait asks for an answer where its context
// allows more: three times as long as a server may be silent before it is taken for
// frozen, so that a connection that was lost is replaced meanwhile.
const TryBound = 3 * time.Second

var errTryBound = fmt.Errorf("%w: no answer within %v", errs.Unavailable, TryBound)

// Bounded returns ctx, ended after TryBound with a cause that matches errs.Unavailable.
func Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, TryBound, errTryBound)
}
