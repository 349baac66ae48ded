// Shutdown: Close, once what is held has been released.

package engine

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// Draining returns a context that ends with errs.Closed when Shutdown begins, or Close. From then on
// nothing new is granted, except to work under a lease of this Client.
func (e *Engine) Draining() context.Context { return e.draining }

// Shutdown lets nothing new be granted, waits until nothing is held and no call is under way, for as
// long as ctx allows, and closes. If ctx ends first, the error matches ctx's.
func (e *Engine) Shutdown(ctx context.Context) error {
	e.drain(errs.Closed)
	err := e.drained(ctx)
	e.close(ctx)
	return err
}

// drained waits until nothing is held any more, and until the releases, and the clean-ups, are
// answered. A call that begins after the last lease has ended finds the Client closed, so that the
// wait comes to an end.
func (e *Engine) drained(ctx context.Context) error {
	for {
		empty, held := e.registry.empty()
		if held == 0 {
			break
		}
		select {
		case <-empty:
		case <-e.closing.Done():
			return nil // by a Close at the same time
		case <-ctx.Done():
			_, held = e.registry.empty()
			return errs.Ended(ctx, fmt.Errorf("%d still held: %w", held, ctx.Err()))
		}
	}
	e.work.close()
	if e.work.left() == 0 {
		return nil // even if ctx has ended as well
	}
	select {
	case <-e.work.empty():
		return nil
	case <-e.closing.Done():
		return nil
	case <-ctx.Done():
		return errs.Ended(ctx, fmt.Errorf("calls under way: %w", ctx.Err()))
	}
}
