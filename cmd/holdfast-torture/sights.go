// Sights: the states of one object that the lookout saw in Redis, over time.

package main

import (
	"sort"
	"time"
)

// sight is the state of an object in Redis.
type sight int

const (
	unseen   sight = iota // no master has answered
	unheld                // free, with no place in the queue
	reserved              // free, and left to the first in the queue, which has not come for it
	standing              // held, handed to a waiter, or left by a holder that is gone
	sights
)

// glimpse is a sight, and the owner that it is about.
type glimpse struct {
	sight sight
	by    string
}

// change is the instant from which on another glimpse was seen.
type change struct {
	at int64
	glimpse
}

// changes are the changes of one object, in order.
type changes []change

// during returns for how long each sight was seen in that time.
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

// longest returns the longest time for which one owner had the object, or was to have it. Times
// in between in which it was out of sight do not interrupt that time.
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
