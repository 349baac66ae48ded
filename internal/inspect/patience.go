// Patience: what goes over very many names may take long, and what gets no answer may not.

package inspect

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

type (
	patienceKey struct{}
	pulseKey    struct{}
)

// defaultPatience is after how long without an answer a look is given up, unless its context says otherwise.
const defaultPatience = 5 * time.Second

// WithPatience returns a context whose looks are given up after that time without an answer.
func WithPatience(ctx context.Context, patience time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, patience)
}

// WhileAnswering returns a context that ends with ctx, or once a look has had no answer for as long as its
// patience: then its cause matches errs.Unavailable. stop ends it, and must be called.
func WhileAnswering(ctx context.Context) (_ context.Context, stop func()) {
	patience, _ := ctx.Value(patienceKey{}).(time.Duration)
	patience = cmp.Or(patience, defaultPatience)
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(patience, func() {
		cancel(fmt.Errorf("%w: Redis has not answered for %v", errs.Unavailable, patience))
	})
	answered := func() { timer.Reset(patience) }
	return context.WithValue(ctx, pulseKey{}, answered), func() {
		timer.Stop()
		cancel(nil)
	}
}

// Answered notes that a look with that context has had an answer.
func Answered(ctx context.Context) {
	if answered, is := ctx.Value(pulseKey{}).(func()); is {
		answered()
	}
}
