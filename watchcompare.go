// Compare: what has happened between two inspections of one name.

package holdfast

import "time"

// Compare returns what has happened between two inspections of the same name: first what ended, then what
// began, then who came to wait. Compare does no I/O.
func Compare(before, after Inspection) []Event {
	c := comparison{before: before, after: after}
	c.states()
	c.holders()
	c.count()
	c.waiters()
	return c.events
}

// comparison is one run of Compare.
type comparison struct {
	before, after Inspection
	events        []Event
}

func (c *comparison) add(e Event) {
	e.Name, e.Kind, e.At = c.after.Name, c.after.Kind, c.after.At
	if e.Kind == KindFree {
		e.Kind = c.before.Kind
	}
	c.events = append(c.events, e)
}

// states finds out how the work of a Once, or a generation of a barrier, has ended.
func (c *comparison) states() {
	if c.before.State == c.after.State {
		return
	}
	what, ended := map[string]Happening{"done": EventDone, "failed": EventFailed, "tripped": EventTripped, "broken": EventBroken}[c.after.State]
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
			c.add(Event{What: EventPassed, From: h, Holder: *to})
		case c.over(h):
			c.add(Event{What: EventExpired, From: h})
		default:
			c.add(Event{What: EventReleased, From: h})
		}
	}
	for _, h := range come {
		if !passed || h != *to {
			c.add(Event{What: EventGranted, Holder: h})
		}
	}
}

// over reports whether a holder's time, as it was when last seen, is over by now.
func (c *comparison) over(h Holder) bool {
	return h.Remaining != NoExpiry && !c.before.At.Add(h.Remaining-rounding).After(c.after.At)
}

// rounding is by how much an end may seem later than it was: Redis returns what is left in whole milliseconds.
const rounding = 5 * time.Millisecond

// identity is what makes a holder the same in two inspections.
type identity struct {
	owner  Owner
	permit string
	write  bool
}

// without returns those holders that are not among others.
func without(holders, others []Holder) (left []Holder) {
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

// alone returns the holder that holds or held it alone; nil if there is none.
func alone(i Inspection, some []Holder) *Holder {
	for n, h := range some {
		switch i.Kind {
		case KindMutex, KindLeader, KindOnce:
			return &some[n]
		case KindRWLock:
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
		c.add(Event{What: EventCounted, Value: value, Was: was, All: all})
	}
}

// number returns what is counted at a name. Of permits that is how many there are in all: that one was taken
// or given back is reported of its holder.
func number(i Inspection) (n int64, counts bool) {
	switch i.Kind {
	case KindPermits:
		return i.Value + int64(i.Taken), true
	case KindCount, KindLatch, KindSemaphore:
		return i.Value, true
	case KindBarrier:
		return i.Value, i.State == "open"
	}
	return 0, false
}

// waiters finds out who has come to wait.
func (c *comparison) waiters() {
	there := make(map[Owner]bool, len(c.before.Queue))
	for _, w := range c.before.Queue {
		there[w.Owner] = true
	}
	for _, w := range c.after.Queue {
		if !there[w.Owner] {
			c.add(Event{What: EventWaits, Waiter: w})
		}
	}
}
