// Clean-up in the background after requests that were never answered.

package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// Background runs f on a goroutine that Close waits for. It reports false, and
// does not run f, when the Client has closed.
func (e *Engine) Background(f func()) bool {
	if !e.work.begin(true) {
		return false
	}
	go func() {
		defer e.work.done()
		f()
	}()
	return true
}

// Settle undoes, in the background, what a request may still do of which the
// answer was never heard. It calls undo again and again, until one is answered
// after the not-after of that request: from then on the request changes nothing
// any more, and whatever it did before has been undone. undo returns the call
// that was answered, or nil if there is nothing left to undo. limit bounds the
// whole; past it the lease that may have been left has run out by itself.
func (e *Engine) Settle(notAfter int64, limit time.Duration, undo func(context.Context) (*conn.Call, error)) {
	e.Background(func() {
		ctx, cancel := context.WithTimeout(e.cleaning, limit)
		defer cancel()
		for {
			call, err := undo(ctx)
			if err != nil {
				e.Log.Warn("holdfast: clean-up gave up; the lease will run out by itself", "error", err)
				return
			}
			if call == nil {
				return
			}
			left := time.Duration(notAfter-call.ServerTime()) * time.Microsecond
			if left < 0 || Sleep(ctx, left+time.Millisecond) != nil {
				return
			}
		}
	})
}

// Sleep waits for d. It returns ctx's error if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
