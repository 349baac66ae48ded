// A lease that is none: nil, or the zero Lease, of one whose Lock had failed.

package lease

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// absent reports whether there is no lease: a Release that is deferred before the error of
// Lock was looked at must not bring the process down.
func (l *Lease) absent() bool { return l == nil || l.hold == nil }

// noLease is the error of what was asked of a lease that is none.
func noLease(op string) error {
	return errs.Wrap(op, fmt.Errorf("there is no lease; look at the error of Lock first: %w", errs.BadArgument))
}

// overContext returns a context that has ended for want of a lease.
func overContext(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	cancel(noLease("lease"))
	return ctx
}
