// The second oracle: tokens grow, whatever data was lost. Stale writes are judged when the
// register takes them (referee.go).

package main

import (
	"cmp"
	"fmt"
	"slices"
)

// disorder returns a sentence for each grant whose token is not greater than that of
// an earlier grant. One is earlier if its Lock had returned before the other was
// called. Only exclusive holds have tokens of their own.
func disorder(name string, capacity int, holds []*hold) []string {
	type event struct {
		at    int64
		call  bool // a call, as opposed to its return
		grant *hold
	}
	var events []event
	for _, h := range holds {
		if h.amount == capacity {
			events = append(events, event{h.call, true, h}, event{h.enter, false, h})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	var found []string
	var greatest *hold              // the hold with the greatest token of those returned so far
	before := make(map[*hold]*hold) // the greatest when the Lock of each was called
	byToken := make(map[int64]*hold)
	for _, e := range events {
		switch {
		case e.call:
			before[e.grant] = greatest
		default:
			if b := before[e.grant]; b != nil && e.grant.token <= b.token {
				found = append(found, fmt.Sprintf("%s: %s has token %d after %s had %d", name, e.grant.lane, e.grant.token, b.lane, b.token))
			}
			if twin := byToken[e.grant.token]; twin != nil {
				found = append(found, fmt.Sprintf("%s: %s and %s both have token %d", name, e.grant.lane, twin.lane, e.grant.token))
			}
			byToken[e.grant.token] = e.grant
			if greatest == nil || e.grant.token > greatest.token {
				greatest = e.grant
			}
		}
	}
	return found
}
