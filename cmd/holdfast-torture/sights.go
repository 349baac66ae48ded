// Sights: what was seen of one object in Redis, over time.

package main

import (
	"sort"
	"time"
)

// sight is what stands in Redis for something.
type sight int

const (
	unseen   sight = iota // no master has answered
	unheld                // free, and nobody is before others in the queue
	reserved              // free, for the first of the queue, who has not come for it
	standing              // held, handed to a waiter, or left by one that is gone
	sights
)

// glimpse is a sight, and whose it is.
type glimpse struct {
	sight sight
	by    string
}

// change is an instant from which on something else was seen.
type change struct {
	at int64
	glimpse
}

// changes are those of one object, in order.
type changes []change

// during returns for how much of the time each was seen.
func (c changes) during(from, to int64) (spent [sights]time.Duration) {
	next := sort.Search(len(c), func(i int) bool { return c[i].at > from })
	now := unseen
	if next > 0 {
		now = c[next-1].sight
	}
	for ; next < len(c) && c[next].at < to; next++ {
		spent[now] += time.Duration(c[next].at - from)
		from, now = c[next].at, c[next].sight
	}
	spent[now] += time.Duration(to - from)
	return spent
}

// longest returns for how long one owner had it, or was to have it, at the most. That
// it was out of sight in between does not make it another time.
func (c changes) longest(from, to int64) time.Duration {
	var worst, since int64
	owner := ""
	next := sort.Search(len(c), func(i int) bool { return c[i].at > from })
	for i := max(next-1, 0); i < len(c) && c[i].at < to; i++ {
		if c[i].sight == unseen {
			continue
		}
		if c[i].by != owner {
			owner, since = c[i].by, max(from, c[i].at)
		}
		until := to
		if i+1 < len(c) {
			until = min(to, c[i+1].at)
		}
		if owner != "" {
			worst = max(worst, until-since)
		}
	}
	return time.Duration(worst)
}
