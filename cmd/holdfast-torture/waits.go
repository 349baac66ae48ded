// How long things took: hand-overs of what is free, losses until they were told,
// grants after an outage.

package main

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// handover is how long something was free before somebody who had waited for it
// held it.
type handover struct {
	from   int64
	took   time.Duration
	spent  [sights]time.Duration // of which it was so in Redis
	kept   time.Duration         // for one owner, at the most: no lane has told of it
	object string
	lane   string
	shadow bool // of a fault that may have held it up
}

// handovers looks at exclusive objects: from the return of Release, or from the call
// of the next holder if that was later, to the return of that one's Lock.
func handovers(name string, holds []*hold, shadows windows, seen changes) []handover {
	byEnter := slices.SortedFunc(slices.Values(holds), func(a, b *hold) int { return cmp.Compare(a.enter, b.enter) })
	var all []handover
	for i, next := range byEnter {
		if i == 0 || byEnter[i-1].ending != released {
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

// lossSignal is how a loss was told: how long after the lease's local deadline (before
// it, if negative), and for how much of that the process had not run.
type lossSignal struct {
	late, starved time.Duration
	lane          string
	never         bool // no word has come
}

// signals returns the losses that were told, with the stalls of their processes.
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

// quantile of durations; 0 of none.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(q*float64(len(sorted)-1))]
}
