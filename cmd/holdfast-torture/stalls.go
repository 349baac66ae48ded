// The times in which processes did not run, as each has reported them.

package main

import "time"

// starved returns for how much of that time the lane's process did not run.
func (v *verdict) starved(lane string, from, to int64) time.Duration {
	return covered(v.stood[processOf(lane)], from, to)
}

// covered returns how much of the time the spans cover. They do not overlap.
func covered(spans []span, from, to int64) (all time.Duration) {
	for _, s := range spans {
		if both := min(s.to, to) - max(s.from, from); both > 0 {
			all += time.Duration(both)
		}
	}
	return all
}

// joined returns the spans, with those that follow each other without a break as one.
func joined(spans []span) (all []span) {
	for _, s := range spans {
		if last := len(all) - 1; last >= 0 && s.from <= all[last].to {
			all[last].to = max(all[last].to, s.to)
			continue
		}
		all = append(all, s)
	}
	return all
}
