// The wait for a Quorum: rounds, and the pauses between them.

package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// rounds asks in rounds until a majority grants the lock.
func (q *Quorum) rounds(ctx context.Context, wait bool, a *telemetry.Acquired) (*majorityHold, error) {
	started := time.Now()
	seen := make([]*seenAt, len(q.members))
	for i, m := range q.members {
		seen[i] = &seenAt{member: m}
	}
	var last error
	turn := q.turn()
	if wait {
		defer turn.over()
	}
	for mayAsk := true; ; mayAsk = !wait || turn.mine(ctx) {
		if err := ctx.Err(); err != nil {
			return nil, because(err, last)
		}
		if !mayAsk {
			_ = engine.Sleep(ctx, random(turn.next()))
			a.Waited = time.Since(started)
			continue
		}
		a.Attempts++
		h, err := q.round(ctx, seen)
		switch {
		case err == nil:
			return h, nil
		case errors.Is(err, errBegun):
			continue
		case !wait || final(err):
			if end := ctx.Err(); end != nil {
				err = because(end, err)
			}
			return nil, err
		case last == nil || ctx.Err() == nil:
			last = err // a round that ctx cut short says nothing
		}
		if !errors.Is(err, errs.Busy) {
			turn.yield()
		}
		// The pause is random, so that of several callers that each took a part of the servers,
		// every one is alone at some time.
		_ = engine.Sleep(ctx, random(turn.next()))
		a.Waited = time.Since(started)
	}
}

// The bounds of the pause between two rounds: see turn.next.
const (
	minPause = 8 * time.Millisecond
	maxPause = 250 * time.Millisecond
)

// random returns at least half of d, and less than d.
func random(d time.Duration) time.Duration { return d/2 + rand.N(d/2) }

// because explains the end of a wait by the last refusal.
func because(end, last error) error {
	if last == nil {
		return end
	}
	return fmt.Errorf("%w: %w", last, end)
}
