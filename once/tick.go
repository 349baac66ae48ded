// Tick: one winner for each time of a schedule.

package once

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
)

// tickLimit is how long a tick is given back in the background, if Redis does not answer.
const tickLimit = time.Minute

// Tick claims one tick of a name, and reports whether this caller has won the tick: see Client.Tick. name
// is the name that errors show. mapped is the name as Redis stores it. at is the time that the schedule
// names for the tick. keep is how long Redis remembers the winner.
func Tick(ctx context.Context, e *engine.Engine, name, mapped string, at time.Time, keep time.Duration) (bool, error) {
	won, err := tick(ctx, e, mapped, at, keep)
	if err != nil {
		return false, errs.Call("take", "tick", name, errs.Ended(ctx, err))
	}
	return won, nil
}

func tick(ctx context.Context, e *engine.Engine, name string, at time.Time, keep time.Duration) (bool, error) {
	if err := e.Broken(); err != nil {
		return false, err
	}
	key, err := e.Keys.ForTick(name, at)
	if err != nil {
		return false, err
	}
	paused := e.Keys.PauseAt(name) // ForTick has checked the name
	if keep < time.Millisecond {
		return false, fmt.Errorf("a tick is kept for %v: %w", keep, errs.BadArgument)
	}
	if err := e.Begin(); err != nil {
		return false, err
	}
	defer e.Done()
	if hold.TurnedAway(ctx, e) {
		return false, errs.Closed
	}
	ctx, cancel := engine.Bounded(ctx)
	defer cancel()
	owner := hold.NewOwner(e.NewOwner()).String()
	call := &conn.Call{Script: tickScript, Keys: []string{key, paused}, Enough: 1, Args: []any{owner, keep.Milliseconds()}}
	err = e.Conn.Run(ctx, call)
	won := err == nil && call.Status() == conn.Done
	if notAfter, unheard := call.Outstanding(); unheard && !won {
		giveBack(e, key, owner, notAfter, keep)
	}
	if err == nil && !won {
		err = pausedIn(call)
	}
	return won, err
}

// giveBack gives the tick back in the background, until no request can take it any more: its caller
// has not won.
func giveBack(e *engine.Engine, key, owner string, notAfter int64, keep time.Duration) {
	e.Settle(notAfter, min(keep, tickLimit)+2*conn.MaxWindow, func(ctx context.Context) (*conn.Call, error) {
		call := &conn.Call{Script: untickScript, Keys: []string{key}, Args: []any{owner}, Cleanup: true}
		return call, e.Conn.Run(ctx, call)
	})
}
