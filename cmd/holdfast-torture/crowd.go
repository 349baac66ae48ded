// The crowd: lanes of every process that ask for one lock without a pause. A process that
// passes the lock on among its own must let the others have their turns.

package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// crowdKind is the kind of lock that a process passes on within itself.
	crowdKind = "mutex"
	crowded   = crowdKind + "-crowd"
	// crowdLanes is how many lanes of each process are in the crowd: one that holds, and
	// always one that waits.
	crowdLanes = 3
	// crowdHold is for how long each turn holds: so the crowd costs little.
	crowdHold = 5 * time.Millisecond

	// enoughTurns is how many turns say something of shares, and leastShare is what a
	// process has of its fair share at the least.
	enoughTurns = 100
	leastShare  = 0.2
)

// runCrowd takes turns in the crowd until ctx ends.
func (l *lane) runCrowd(ctx context.Context) error {
	for ctx.Err() == nil {
		h, err := l.lock(ctx, crowded, l.ways.take(crowded, true, l.rand), 30*time.Second, false)
		if h == nil && err == nil {
			continue
		}
		if err == nil {
			err = h.through(crowdHold, crowdHold)
		}
		if err != nil {
			return fmt.Errorf("lane %s: %w", l.name, err)
		}
	}
	return nil
}

// shares judges whether each process has had its turns, of those that the crowd had.
func (v *verdict) shares(holds []*hold, processes int) {
	turns := make(map[string]int)
	for _, h := range holds {
		turns[processOf(h.lane)]++
	}
	if len(holds) < enoughTurns {
		return
	}
	for place := range processes {
		least := int(leastShare * float64(len(holds)) / float64(processes))
		if n := turns[fmt.Sprint(place)]; n < least {
			v.violate("process %d had %d of %d turns in the crowd before the first fault, want %d", place, n, len(holds), least)
		}
	}
}
