// The wait for a Quorum: rounds, and the pauses between them.

package quorum

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

func (q *Quorum) rounds(ctx context.Context, wait bool, a *telemetry.Acquired) (h *majorityHold, err error) {
	started, seen, turn := time.Now(), q.unseen(), q.turn(wait)
	defer func() { turn.over(h != nil) }()
	var last error
	for first := true; ; first = false {
		mayAsk := turn.mayAsk(ctx, first)
		if end := ctx.Err(); end != nil {
			if last == nil {
				last = turn.unasked()
			}
			return nil, because(end, last)
		}
		if mayAsk {
			a.Attempts++
			h, err = q.round(ctx, seen)
			switch {
			case errors.Is(err, errBegun):
				continue // at once: the next round counts
			case err == nil:
				return h, nil
			case !wait || final(err):
				return nil, ended(ctx, err)
			}
			last = turn.refused(ctx, last, err)
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

// ended returns the error of the last round, and that ctx has ended if it has.
func ended(ctx context.Context, err error) error {
	if end := ctx.Err(); end != nil {
		return because(end, err)
	}
	return err
}

// because explains the end of a wait by the last refusal.
func because(end, last error) error {
	if last == nil {
		return end
	}
	return fmt.Errorf("%w: %w", last, end)
}
