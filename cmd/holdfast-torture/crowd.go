// The crowds: lanes of every process that ask for one lock without a pause. In one crowd they
// wait: a process that passes the lock on within itself must let the others have their turns.
// In the other they only try: no lane queues, so a release that is sent again, or late, meets
// the lock in the hands of the next holder.

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
	tried     = crowdKind + "-tried"
	// crowdLanes is how many lanes of each process are in the crowd: one that holds, and always
	// one that waits.
	crowdLanes = 3
	// crowdHold is how long each turn holds the lock. It makes the crowd cost little.
	crowdHold = 5 * time.Millisecond
	// crowdCohort is for how long a process passes the lock on: for some nine turns, or two where the
	// machine is so busy that a turn takes 30 ms.
	crowdCohort = 50 * time.Millisecond

	// enoughTurns is the number of turns from which on shares are judged, and leastShare is the
	// least part of its fair share that a process must get.
	enoughTurns = 100
	leastShare  = 0.2
)

// runCrowd takes turns in the crowd until ctx ends.
func (l *lane) runCrowd(ctx context.Context) error {
	for ctx.Err() == nil {
		h, err := l.lock(ctx, crowded, l.ways.take(crowded, true, l.rand), 30*time.Second, false)
		if h != nil {
			err = h.through(crowdHold, crowdHold)
		}
		if err != nil {
			return fmt.Errorf("lane %s: %w", l.name, err)
		}
	}
	return nil
}

// runTrier tries to take a lock for which no lane waits, until ctx ends.
func (l *lane) runTrier(ctx context.Context) error {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(l.rand.IntN(4000)) * time.Microsecond)
		h, err := l.lock(ctx, tried, l.ways.take(tried, true, l.rand), 30*time.Second, true)
		if h != nil {
			length := time.Duration(l.rand.IntN(20)) * time.Millisecond
			err = h.through(length, length)
		}
		if err != nil {
			return fmt.Errorf("lane %s: %w", l.name, err)
		}
	}
	return nil
}

// shares judges whether each process got enough of the turns that the crowd had.
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
			v.exceed("process %d had %d of %d turns in the crowd before the first fault, want %d", place, n, len(holds), least)
		}
	}
}
