// Those that wait, as an inspection finds them.

package inspect

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/hold"
)

// priorityStep is how much smaller the number of a candidate is for each step of its priority, in
// microseconds: see leader/lua/candidate.lua.
const priorityStep = 10_000_000_000_000

// queue parses those that wait, from element i of the reply on, and puts them in their order.
func (s *State) queue(call *conn.Call, i int) []Waiter {
	type placed struct {
		Waiter
		number int64
	}
	var all []placed
	for ; i+2 < call.Reply.Len(); i += 3 {
		var w placed
		var err error
		if w.Owner, err = hold.ParseOwner(call.Text(i)); err != nil {
			continue
		}
		w.number, _ = strconv.ParseInt(call.Text(i+1), 10, 64)
		switch text := call.Text(i + 2); s.Kind {
		case rwLock:
			w.Since, w.Write = time.UnixMilli(w.number), text == "w"
		case barrier:
			w.number = -w.number // who had more to wait for came first
		default:
			w.Since = joined(s.At, w.number)
			w.Said.Who = identity(text)
		}
		all = append(all, w)
	}
	if s.Kind == rwLock || s.Kind == barrier {
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
