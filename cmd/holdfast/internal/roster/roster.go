// Package roster selects and sorts the names that are in Redis, for the live screen of holdfast top and for the list of
// holdfast console.
package roster

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// Order is what names are sorted by.
type Order string

// What names may be sorted by. What is not known comes last, whichever way they are sorted.
const (
	ByName    Order = "name"
	ByAge     Order = "age"     // the longest held last
	ByLeft    Order = "left"    // those that end soonest first
	ByWaiters Order = "waiters" // the least waited for first
)

// Query says which names somebody wants to see, and in which order. The zero Query is for all, by name.
type Query struct {
	Part   Part
	Kind   holdfast.Kind // "": every kind
	Search string        // in lower case: what a name, a holder, a note or a waiter has, in whatever case
	Older  time.Duration // only those that have been held for so long at least; 0: all
	Sort   Order
	Down   bool // the other way round
}

// Part is a part of the kinds.
type Part int

// The parts of the kinds. A lock has a holder; a count is a semaphore, a latch, or the like.
const (
	All Part = iota
	Locks
	Counts
)

// lockKinds are the kinds of locks.
var lockKinds = []holdfast.Kind{holdfast.KindMutex, holdfast.KindRWLock, holdfast.KindLeader, holdfast.KindOnce}

// partOf returns the part that a state belongs to, or All if it belongs to none: a name that somebody looks at alone may
// be free, or have what is nothing of Holdfast's.
func partOf(i holdfast.Inspection) Part {
	switch {
	case slices.Contains(lockKinds, i.Kind), i.Kind == holdfast.KindFree && i.Paused != nil:
		return Locks
	case i.Kind == holdfast.KindFree, i.Kind == holdfast.KindUnknown:
		return All
	}
	return Counts
}

// Of returns those of some states that are asked for. The states are in the order of their names.
func (q Query) Of(states []holdfast.Inspection) (found []holdfast.Inspection) {
	for _, i := range states {
		if q.Part != All && partOf(i) != q.Part {
			continue
		}
		if (q.Kind == "" || q.Kind == i.Kind) && has(i, q.Search) && (q.Older <= 0 || heldFor(i) >= q.Older) {
			found = append(found, i)
		}
	}
	q.sort(found)
	return found
}

// heldFor returns for how long a name had been held when it was inspected; 0 if that is not known.
func heldFor(i holdfast.Inspection) time.Duration {
	if i.HeldSince.IsZero() {
		return 0
	}
	return i.At.Sub(i.HeldSince)
}

// has reports whether a text is in a name, or in what is known of its holders and waiters.
func has(i holdfast.Inspection, text string) bool {
	if text == "" || contains(view.Name(i.Name), text) {
		return true
	}
	for _, h := range i.Holders {
		if contains(h.Who, text) || contains(h.Note, text) || contains(shortOf(h.Owner), text) {
			return true
		}
	}
	return slices.ContainsFunc(i.Queue, func(w holdfast.Waiter) bool {
		return contains(w.Who, text) || contains(shortOf(w.Owner), text)
	})
}

func contains(text, part string) bool { return strings.Contains(strings.ToLower(text), part) }

func shortOf(o holdfast.Owner) string {
	if o.IsZero() {
		return ""
	}
	return o.Short()
}

func (q Query) sort(all []holdfast.Inspection) {
	number := map[Order]func(holdfast.Inspection) (int64, bool){
		ByAge:     func(i holdfast.Inspection) (int64, bool) { return -i.HeldSince.UnixMilli(), !i.HeldSince.IsZero() },
		ByLeft:    func(i holdfast.Inspection) (int64, bool) { return int64(i.Remaining), len(i.Holders) > 0 },
		ByWaiters: func(i holdfast.Inspection) (int64, bool) { return int64(i.Waiters), i.Waiters > 0 },
	}[q.Sort]
	if number == nil { // they are in the order of their names
		if q.Down {
			slices.Reverse(all)
		}
		return
	}
	slices.SortStableFunc(all, func(a, b holdfast.Inspection) int {
		x, known := number(a)
		y, too := number(b)
		switch {
		case known != too && known:
			return -1
		case known != too:
			return 1
		case q.Down:
			x, y = y, x
		}
		return cmp.Compare(x, y)
	})
}

// Totals say how it stands with all names.
type Totals struct {
	Locks, Counts int
	Held          int       // how many of the locks are held
	Waited        int       // for how many of the locks somebody waits
	Waiters       int       // how many wait for them
	Longest       time.Time // since when the lock that is held for longest is held; zero if none is
}

// TotalsOf returns the totals of some states.
func TotalsOf(states []holdfast.Inspection) (t Totals) {
	for _, i := range states {
		switch partOf(i) {
		case Counts:
			t.Counts++
			continue
		case All:
			continue
		}
		t.Locks++
		if len(i.Holders) > 0 {
			t.Held++
		}
		if i.Waiters > 0 {
			t.Waited++
			t.Waiters += i.Waiters
		}
		if !i.HeldSince.IsZero() && (t.Longest.IsZero() || i.HeldSince.Before(t.Longest)) {
			t.Longest = i.HeldSince
		}
	}
	return t
}
