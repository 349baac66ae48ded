// What the methods of a nil or zero Lease do. A failed Lock returns a nil Lease.

package hold

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// absent reports whether l is nil or the zero Lease. A program may defer Release before it looks at
// the error of Lock. That Release must not panic.
func (l *Lease) absent() bool { return l == nil || l.hold == nil }

// noLease returns the error of an operation on a Lease that is absent.
func noLease(op string) error {
	return errs.Wrap(op, fmt.Errorf("there is no lease; look at the error of Lock first: %w", errs.BadArgument))
}

// overContext returns a context that has ended because there is no lease.
func overContext(parent context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(parent)
	cancel(noLease("lease"))
	return ctx
}
