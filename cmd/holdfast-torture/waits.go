// Durations: hand-overs of free objects, losses until their holders were notified, outages until the next
// grant.

package main

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// handover is how long an object was free before a lane that had waited for it held it.
type handover struct {
	from   int64
	took   time.Duration
	spent  [sights]time.Duration // for how long of it each sight was seen in Redis
	kept   time.Duration         // the longest time for one owner that no lane has reported
	object string
	lane   string
	shadow bool // it was in the shadow of a fault that may have held it up
}

// handovers returns the hand-overs of an exclusive object to a lane that waited, and had called Lock before
// Release returned. Each lasts from the return of that Release to the return of that Lock.
func handovers(name string, holds []*hold, shadows windows, seen changes) []handover {
	byEnter := slices.SortedFunc(slices.Values(holds), func(a, b *hold) int { return cmp.Compare(a.enter, b.enter) })
	var all []handover
	for i, next := range byEnter {
		if i == 0 || !next.waited || byEnter[i-1].ending != released {
			continue
		}
		free := byEnter[i-1].end
		if took := next.enter - max(free, next.call); took > 0 && next.call < free {
			all = append(all, handover{
				from: free, took: time.Duration(took),
				spent: seen.during(free, next.enter), kept: seen.longest(free, next.enter),
				object: name, lane: next.lane, shadow: shadows.meet(free, next.enter),
			})
		}
	}
	return all
}

// lossSignal is how a holder was notified of a loss: how long after the lease's local deadline (before it, if
// negative), and for how much of that time the process did not run.
type lossSignal struct {
	late, starved time.Duration
	lane          string
	never         bool // the holder was never notified
}

// signals returns the losses of which the holders were notified, with the stalls of their processes. A loss of which
// nobody was notified is marked never.
func signals(holds []*hold, stalls map[string][]span) []lossSignal {
	var all []lossSignal
	for _, h := range holds {
		if h.told == 0 {
			if h.ending == lost {
				all = append(all, lossSignal{lane: h.lane, never: true})
			}
			continue
		}
		s := lossSignal{late: time.Duration(h.told - h.deadline), lane: h.lane}
		s.starved = covered(stalls[processOf(h.lane)], h.deadline, h.told)
		all = append(all, s)
	}
	return all
}

// processOf returns the process of a lane.
func processOf(lane string) string {
	process, _, _ := strings.Cut(lane, ".")
	return process
}

// margin is how much earlier than Redis a lease ends here (docs/guarantees.md).
func margin(lease time.Duration) time.Duration { return lease/100 + 5*time.Millisecond }

// quantile returns the q-quantile of the durations; 0 if there are none.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(q*float64(len(sorted)-1))]
}
