// The first oracle: claims that exclude each other have no instant in common.

package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// overlap is an instant at which more was held than there is.
type overlap struct {
	object     string
	at         int64
	holds      []*hold
	unpromised bool
}

func (o overlap) String() string {
	text := fmt.Sprintf("%s at %d:", o.object, o.at)
	for _, h := range o.holds {
		text += fmt.Sprintf(" [%s took %d, token %d, from %d to %d, asked %d, then %s]",
			h.lane, h.amount, h.token, h.enter, h.last, h.call, h.ending)
	}
	return text
}

// overlaps returns the instants at which a hold was added although there was no room for it.
// excused decides which of them are not promised away.
func overlaps(name string, capacity int, holds []*hold, excused func([]*hold) bool) []overlap {
	byEnter := slices.SortedFunc(slices.Values(holds), func(a, b *hold) int { return cmp.Compare(a.enter, b.enter) })
	var found []overlap
	var inside []*hold
	for _, h := range byEnter {
		inside = slices.DeleteFunc(inside, func(o *hold) bool { return o.last < h.enter })
		inside = append(inside, h)
		sum := 0
		for _, o := range inside {
			sum += o.amount
		}
		if sum > capacity {
			all := slices.Clone(inside)
			found = append(found, overlap{name, h.enter, all, excused(all)})
		}
	}
	return found
}

// windows are the times in which Redis may forget objects of one tier.
type windows struct {
	spans []span
	lease int64 // a grant may be heard of this much later
}

// excuse reports whether Redis may have forgotten any of these grants between the first of them
// and the last.
func (w windows) excuse(holds []*hold) bool {
	first, last := holds[0].enter, holds[0].enter
	for _, h := range holds {
		first, last = min(first, h.enter), max(last, h.enter)
	}
	return w.meet(first-w.lease, last)
}

// givesUpAfter is how long a release that was not answered goes on in the background.
const givesUpAfter = 5 * time.Minute

// counting returns the windows in which there may be more permits than were set. Redis may forget a
// take, but its taker gives back what it took, after the window perhaps: until then a count may
// still grow too large.
func (w windows) counting(holds []*hold) windows {
	spans := slices.Clone(w.spans)
	for i, s := range w.spans {
		for _, h := range holds {
			if h.enter > s.to+w.lease {
				continue
			}
			given := h.end
			if h.ending != released && h.ending != gone {
				given += int64(givesUpAfter) // in the background
			}
			spans[i].to = max(spans[i].to, given)
		}
	}
	return windows{spans, w.lease}
}

// meet reports whether one of the windows has an instant in common with the time.
func (w windows) meet(from, to int64) bool {
	return slices.ContainsFunc(w.spans, func(s span) bool { return s.from <= to && from <= s.to })
}

// part splits holds into those between one window and the next.
func (w windows) part(holds []*hold) [][]*hold {
	parts := make([][]*hold, len(w.spans)+1)
	for _, h := range holds {
		before := 0
		for _, s := range w.spans {
			if s.to < h.enter {
				before++
			}
		}
		parts[before] = append(parts[before], h)
	}
	return parts
}
