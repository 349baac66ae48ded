// Compare: what has happened between two inspections of one name.

package observe

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

// What is what has happened.
type What string

// What may happen at a name.
const (
	Granted  What = "granted"  // to Holder
	Released What = "released" // by From: before its time was over. It may also have been taken from it
	Expired  What = "expired"  // From's time was over, and it had not been seen to renew or to release
	Passed   What = "passed"   // from From to Holder: a hand-over, or a release and a grant
	Unseen   What = "unseen"   // Times releases were announced, of holds that no look has found
	Waits    What = "waits"    // Waiter has come
	Counted  What = "counted"  // Value, of All, was Was
	Done     What = "done"     // the work of a Once, by From if it was seen at work
	Failed   What = "failed"   // the same
	Tripped  What = "tripped"  // a generation of a barrier
	Broken   What = "broken"   // a generation of a barrier
)

// Event is one thing that has happened at a name, as far as two looks at it tell. Between them more may
// have happened.
type Event struct {
	What What
	Name string
	Kind holdfast.Kind // of what stands there, or stood there if nothing does now
	At   time.Time     // when it was seen, on the server's clock

	Holder, From holdfast.Holder
	Waiter       holdfast.Waiter

	// Times is how many releases an Unseen stands for.
	Times int

	// Value is the new count: of a latch, of a semaphore's free permits, of a barrier's parties that have
	// come, or of the permits of a PermitSemaphore in all. Was is what it was. All is how many there are
	// in all, where that is known.
	Value, Was, All int64
}

// Compare returns what has happened between two inspections of a name: first what ended, then what began,
// then who came to wait. It asks nobody.
func Compare(before, after holdfast.Inspection) []Event {
	c := comparison{before: before, after: after}
	c.states()
	c.holders()
	c.count()
	c.waiters()
	return c.events
}

// comparison is one run of Compare.
type comparison struct {
	before, after holdfast.Inspection
	events        []Event
}

func (c *comparison) add(e Event) {
	e.Name, e.Kind, e.At = c.after.Name, c.after.Kind, c.after.At
	if e.Kind == holdfast.KindFree {
		e.Kind = c.before.Kind
	}
	c.events = append(c.events, e)
}

// states finds out how the work of a Once, or a generation of a barrier, has ended.
func (c *comparison) states() {
	if c.before.State == c.after.State {
		return
	}
	what, ended := map[string]What{"done": Done, "failed": Failed, "tripped": Tripped, "broken": Broken}[c.after.State]
	if !ended {
		return
	}
	e := Event{What: what}
	if len(c.before.Holders) == 1 {
		e.From = c.before.Holders[0]
	}
	c.add(e)
}

// ending reports whether the work of a Once has come to its end: then its holder is not reported again.
func (c *comparison) ending() bool { return c.after.State == "done" || c.after.State == "failed" }

// holders finds out who has gone, and who has come.
func (c *comparison) holders() {
	gone := without(c.before.Holders, c.after.Holders)
	come := without(c.after.Holders, c.before.Holders)
	if c.ending() {
		gone = nil
	}
	from, to := alone(c.before, gone), alone(c.after, come)
	passed := from != nil && to != nil && !c.over(*from)
	for _, h := range gone {
		switch {
		case passed && h == *from:
			c.add(Event{What: Passed, From: h, Holder: *to})
		case c.over(h):
			c.add(Event{What: Expired, From: h})
		default:
			c.add(Event{What: Released, From: h})
		}
	}
	for _, h := range come {
		if !passed || h != *to {
			c.add(Event{What: Granted, Holder: h})
		}
	}
}

// over reports whether a holder's time was over by now, as it stood when it was last seen.
func (c *comparison) over(h holdfast.Holder) bool {
	return h.Remaining != holdfast.NoExpiry && !c.before.At.Add(h.Remaining-rounding).After(c.after.At)
}

// rounding is by how much an end may seem later than it was: Redis tells what is left in whole milliseconds.
const rounding = 5 * time.Millisecond

// identity is what makes a holder the same in two inspections.
type identity struct {
	owner  holdfast.Owner
	permit string
	write  bool
}

// without returns those holders that are not among others.
func without(holders, others []holdfast.Holder) (left []holdfast.Holder) {
	there := make(map[identity]bool, len(others))
	for _, h := range others {
		there[identity{h.Owner, h.Permit, h.Write}] = true
	}
	for _, h := range holders {
		if !there[identity{h.Owner, h.Permit, h.Write}] {
			left = append(left, h)
		}
	}
	return left
}

// alone returns the one of some holders that holds or held it alone; nil if there is none.
func alone(i holdfast.Inspection, some []holdfast.Holder) *holdfast.Holder {
	for n, h := range some {
		switch i.Kind {
		case holdfast.KindMutex, holdfast.KindLeader, holdfast.KindOnce:
			return &some[n]
		case holdfast.KindRWLock:
			if h.Write {
				return &some[n]
			}
		}
	}
	return nil
}

// count finds out whether a count has changed.
func (c *comparison) count() {
	was, counted := number(c.before)
	value, counts := number(c.after)
	if !counted && !counts || c.after.State == "tripped" || c.after.State == "broken" {
		return
	}
	all := c.after.All
	if was != value || counted && counts && c.before.All != all && c.before.All != 0 && all != 0 {
		c.add(Event{What: Counted, Value: value, Was: was, All: all})
	}
}

// number returns what is counted at a name. Of permits that is how many there are in all: that one was taken
// or given back is reported of its holder.
func number(i holdfast.Inspection) (n int64, counts bool) {
	switch i.Kind {
	case holdfast.KindPermits:
		return i.Value + int64(i.Taken), true
	case holdfast.KindCount, holdfast.KindLatch, holdfast.KindSemaphore:
		return i.Value, true
	case holdfast.KindBarrier:
		return i.Value, i.State == "open"
	}
	return 0, false
}

// waiters finds out who has come to wait.
func (c *comparison) waiters() {
	there := make(map[holdfast.Owner]bool, len(c.before.Queue))
	for _, w := range c.before.Queue {
		there[w.Owner] = true
	}
	for _, w := range c.after.Queue {
		if !there[w.Owner] {
			c.add(Event{What: Waits, Waiter: w})
		}
	}
}
