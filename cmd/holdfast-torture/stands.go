// Two oracles on the state in Redis: no lease lasts longer here than in Redis, and no lock
// stands in Redis for an unknown owner.

package main

import (
	"time"
)

// stand is one look at a lock that was held.
type stand struct {
	at    int64 // before the look
	until int64 // when the hold ends, unless it is renewed
	owner string
}

// claim is the deadline of a lease, as its lane knew it at an instant.
type claim struct{ at, deadline int64 }

const (
	// clockGrain is how far apart the two compared clocks may be: Redis reports whole
	// milliseconds.
	clockGrain = 5 * time.Millisecond
	// strayBound is how long a lock may stand for an owner that no lane knows: a request may be
	// late by a second, and is undone after that.
	strayBound = 1500 * time.Millisecond
)

// outlasting returns how many looks found that the holder believed in a later end than Redis
// would give it, and by at most how much.
func outlasting(holds []*hold, seen []stand, shadow windows) (n int, worst time.Duration) {
	byOwner := make(map[string][]*hold)
	for _, h := range holds {
		if h.owner != "" {
			byOwner[h.owner] = append(byOwner[h.owner], h)
		}
	}
	for _, s := range seen {
		for _, h := range byOwner[s.owner] {
			believed := int64(0)
			for _, c := range h.claims {
				if c.at <= s.at && s.at <= h.last {
					believed = max(believed, c.deadline)
				}
			}
			if over := time.Duration(believed - s.until); over > clockGrain && !shadow.meet(h.enter, s.at) {
				n++
				worst = max(worst, over)
			}
		}
	}
	return n, worst
}

// stray is a time in which a lock stood for an owner that no lane knows.
type stray struct {
	span
	owner string
}

// strays returns the stray times that were too long and that no fault explains.
func strays(holds []*hold, seen []stand, shadow windows) (all []stray) {
	known := make(map[string]bool)
	for _, h := range holds {
		known[h.owner] = true
	}
	var now stray
	end := func() {
		if now.owner != "" && time.Duration(now.to-now.from) > strayBound && !shadow.meet(now.from, now.to) {
			all = append(all, now)
		}
	}
	for _, s := range seen {
		switch {
		case known[s.owner]:
			end()
			now = stray{}
		case s.owner == now.owner:
			now.to = s.at
		default:
			end()
			now = stray{span{s.at, s.at}, s.owner}
		}
	}
	end()
	return all
}
