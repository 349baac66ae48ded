// Clean-up in the background after requests that were never answered.

package engine

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// Background runs f on a goroutine that Close waits for. If the Client has closed, it does not run
// f and reports false.
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

// soon is the first pause of Settle. Each is three times as long as the one before it.
const soon = 5 * time.Millisecond

// Settle undoes, in the background, what a request whose reply was never heard may have done or may
// still do. It calls undo again and again, until one is answered after that request's not-after,
// which is in microseconds of the server's clock. From then on the request changes nothing any
// more, and whatever it did before has been undone. If an undo overtakes the request, the request
// mostly arrives a few milliseconds later, so the first pauses are short.
//
// undo returns the call that was answered, or nil if nothing is left to undo. If it fails, Settle
// logs that and gives up. limit bounds the whole clean-up: after it, what was taken has run out.
func (e *Engine) Settle(notAfter int64, limit time.Duration, undo func(context.Context) (*conn.Call, error)) {
	e.Background(func() {
		ctx, cancel := context.WithTimeout(e.cleaning, limit)
		defer cancel()
		for pause := soon; ; pause *= 3 {
			call, err := undo(ctx)
			if err != nil {
				if left := e.gaveUp.tell(); left > 0 {
					e.Log.Warn("holdfast: clean-up gave up; the lease will run out", "error", err, "since_last", left)
				}
				return
			}
			if call == nil {
				return
			}
			left := time.Duration(notAfter-call.ServerTime()) * time.Microsecond
			if left < 0 || Sleep(ctx, min(pause, left+time.Millisecond)) != nil {
				return
			}
		}
	})
}

// gaveUp counts clean-ups that gave up. They give up together, as when the Client closes while Redis is out of
// reach, so the log has one line for those of a minute.
type gaveUp struct {
	mu   sync.Mutex
	told time.Time // when the log last said so
	many int       // how many there were since
}

// tell counts one more clean-up that gave up. It returns how many there were if they are to be
// logged now; otherwise 0.
func (g *gaveUp) tell() (left int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.many++
	if !g.told.IsZero() && time.Since(g.told) < time.Minute {
		return 0
	}
	left, g.many, g.told = g.many, 0, time.Now()
	return left
}

// Sleep waits for d. If ctx ends first, it returns ctx's error.
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
