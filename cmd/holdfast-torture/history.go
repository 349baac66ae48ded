// The third oracle: histories of operations, checked with Porcupine against a
// sequential model.

package main

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	historyHolds = 5000             // holds of two operations each
	historyTime  = 60 * time.Second // for one check
)

// step is the input of an operation on an object.
type step struct {
	give   bool // giving, as opposed to taking
	amount int
	token  int64
}

// state is the state of the object: how much is taken, and the last token.
type state struct {
	taken int
	token int64
}

// model is the sequential object. The amounts that are taken must fit, and each exclusive grant
// has a greater token than the last. More is never given back than was taken, because each hold
// gives once, after it took. A reader's token is that of the last writer. The record may lack
// that writer, so the reader's token may be greater.
func model(r rule, carried int) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return state{taken: carried} },
		Step: func(at, input, _ any) (bool, any) {
			now, s := at.(state), input.(step)
			if s.give {
				now.taken -= s.amount
				return true, now
			}
			now.taken += s.amount
			if now.taken > r.capacity {
				return false, at
			}
			if r.fenced {
				if s.token < now.token || s.amount == r.capacity && s.token == now.token {
					return false, at
				}
				now.token = s.token
			}
			return true, now
		},
	}
}

// history is a part of an object's record.
type history struct {
	object     string
	model      porcupine.Model
	operations []porcupine.Operation
}

// histories cuts the record of an object into histories. A hold that was not given back by a
// call that succeeded may have ended at any time between the last instant at which it is known
// to have lasted and a lease after its end was known. Without leases, it may have ended at any
// time until the end of the record.
func histories(name string, r rule, holds []*hold, lease time.Duration) []history {
	byEnter := slices.SortedFunc(slices.Values(holds), func(a, b *hold) int { return cmp.Compare(a.enter, b.enter) })
	var all []history
	for from := 0; from < len(byEnter); from += historyHolds {
		part := byEnter[from:min(from+historyHolds, len(byEnter))]
		h := history{object: name}
		carried := 0
		// Amounts that were taken before the part begins and may not have been given back.
		for _, earlier := range byEnter[:from] {
			if _, end := giving(earlier, r, lease); end >= part[0].enter {
				carried += earlier.amount
				h.operations = append(h.operations, give(earlier, r, lease))
			}
		}
		for _, o := range part {
			h.operations = append(h.operations, take(o), give(o, r, lease))
		}
		h.model = model(r, carried)
		all = append(all, h)
	}
	return all
}

// giving returns the earliest and the latest time at which a hold ended in Redis.
func giving(h *hold, r rule, lease time.Duration) (from, to int64) {
	switch {
	case h.ending == released, h.ending == kept:
		return h.releasing, h.end
	case !r.owned:
		return h.last, math.MaxInt64
	}
	return h.last, h.end + int64(lease+time.Second)
}

func give(h *hold, r rule, lease time.Duration) porcupine.Operation {
	from, to := giving(h, r, lease)
	return porcupine.Operation{Input: step{give: true, amount: h.amount, token: h.token}, Call: from, Return: to, Metadata: h}
}

func take(h *hold) porcupine.Operation {
	return porcupine.Operation{Input: step{amount: h.amount, token: h.token}, Call: h.call, Return: h.enter, Metadata: h}
}

// latchHistory is the record of one latch that n lanes counted down: the rest that each lane
// was notified, and that no lane has passed before zero.
func latchHistory(name string, n int, counts []count) history {
	h := history{object: name, model: porcupine.Model{
		Init: func() any { return n },
		Step: func(at, input, _ any) (bool, any) {
			left, c := at.(int), input.(count)
			switch {
			case c.wait:
				return left == 0, left
			case c.unknown:
				return true, max(0, left-1)
			}
			return int64(left-1) == c.left, left - 1
		},
	}}
	last := int64(0)
	for _, c := range counts {
		last = max(last, c.at)
	}
	for _, c := range counts {
		to := c.at
		if c.unknown {
			to = last
		}
		h.operations = append(h.operations, porcupine.Operation{Input: c, Call: c.call, Return: to})
	}
	return h
}

// explain describes where an illegal history cannot go on: the operations in the best order up
// to there, and the one that had to come next.
func (h history) explain() string {
	_, info := porcupine.CheckOperationsVerbose(h.model, h.operations, historyTime)
	var best []porcupine.Operation
	for _, parts := range info.PartialLinearizationsOperations() {
		for _, part := range parts {
			if len(part) > len(best) {
				best = part
			}
		}
	}
	type key struct {
		call, end int64
		input     any
	}
	ordered := make(map[key]bool)
	for _, o := range best {
		ordered[key{o.Call, o.Return, o.Input}] = true
	}
	next := porcupine.Operation{Return: math.MaxInt64}
	for _, o := range h.operations {
		if !ordered[key{o.Call, o.Return, o.Input}] && o.Return < next.Return {
			next = o
		}
	}
	var text strings.Builder
	for _, o := range append(best[max(0, len(best)-6):], next) {
		fmt.Fprintf(&text, "; %+v from %d to %d", o.Input, o.Call, o.Return)
		if by, ok := o.Metadata.(*hold); ok {
			fmt.Fprintf(&text, " by %s, which %s", by.lane, by.ending)
		}
	}
	return text.String()
}

// judge returns a description of what is wrong with the history, "" if nothing is.
func (h history) judge() string {
	switch result := h.check(); result {
	case porcupine.Ok:
		return ""
	case porcupine.Illegal:
		return "illegal" + h.explain()
	default:
		return strings.ToLower(string(result))
	}
}

// check decides whether the history has a sequential order that the model allows.
func (h history) check() porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(h.model, h.operations, historyTime)
}

// checkHistories makes Porcupine check all histories, on all processors.
func (v *verdict) checkHistories() {
	var (
		mu      sync.Mutex
		workers sync.WaitGroup
		next    = make(chan func() []history)
	)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for some := range next {
				for _, h := range some() {
					why := h.judge()
					mu.Lock()
					v.Histories.Checked++
					v.Histories.Operations += len(h.operations)
					if why != "" {
						v.violate("a history of %s, of %d operations, is %s", h.object, len(h.operations), why)
					}
					mu.Unlock()
				}
			}
		})
	}
	for _, some := range v.histories {
		next <- some
	}
	close(next)
	workers.Wait()
}
