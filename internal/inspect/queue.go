// Those that wait, as an inspection finds them.

package inspect

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// priorityStep is how much smaller the number of a candidate is for each step of its priority, in
// microseconds: see leader/lua/candidate.lua.
const priorityStep = 10_000_000_000_000

func (s *State) queue(waiters []listed) []Waiter {
	type placed struct {
		Waiter
		number int64
	}
	var all []placed
	for _, l := range waiters {
		w := placed{Waiter{Owner: l.owner}, l.number}
		switch s.Kind {
		case rwLock, slots:
			w.Since, w.Write = time.UnixMilli(w.number), l.text == "w"
		case barrier:
			w.number = -w.number // who had more to wait for came first
		default:
			w.Since = joined(s.At, w.number)
			w.Said.Who = identity(l.text)
		}
		all = append(all, w)
	}
	if s.Kind == rwLock || s.Kind == slots || s.Kind == barrier {
		slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.number, b.number) })
	}
	var queue []Waiter
	for _, w := range all {
		queue = append(queue, w.Waiter)
	}
	return queue
}

// joined returns when the owner with that number in a queue joined it. The number is that time, less a
// step for each step of priority. Nobody waits for half a step, which is 57 days.
func joined(at time.Time, number int64) time.Time {
	steps := math.Round(float64(at.UnixMicro()-number) / priorityStep)
	return time.UnixMicro(number + int64(steps)*priorityStep)
}

// identity returns the identity in what a candidate says of itself: "<priority> <identity>".
func identity(text string) string {
	_, who, _ := strings.Cut(text, " ")
	return who
}
