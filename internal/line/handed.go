// Hand-over by a message: the waiter has the thing without asking for it.

package line

import (
	"strconv"
	"strings"
	"time"
)

// handed reports whether the message hands the thing to the head, and whether that is enough, so
// that the head need not ask. It is enough if nothing is in doubt, if the thing is the head's for
// long enough to see to the rest later, and if no waiter is behind the head for which a request
// would reserve something. If the message hands the thing to a waiter behind the head, that waiter
// is nudged: it asks at once.
func (l *Lines) handed(me *waiter, message string) bool {
	t, q := me.ticket, me.line
	owner, token, left := parseHandOver(message)
	if t == nil || token == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	own, kept := t.Owner, t.Kept
	switch {
	case t.Grain == PerProcess:
		own, kept = q.seat.owner, q.seat.kept
	case owner != own:
		me.nudgeBehind(owner)
	}
	reserves := me.next != nil && me.terms != (Terms{})
	if owner != own || me.what != nil || t.Doubt || reserves || !t.enough(kept, left) {
		return false
	}
	t.Owner, t.Kept, t.Token, t.Left = own, kept, token, left
	me.got, me.asking = true, true
	if t.Grain == PerProcess {
		t.Next, q.seat, q.handed = 0, seat{}, true
	}
	return true
}

// nudgeBehind nudges the waiter behind this one that has that owner, if there is one.
func (me *waiter) nudgeBehind(owner int64) {
	for at := me.next; at != nil; at = at.next {
		if at.ticket.Owner == owner {
			at.nudge()
			return
		}
	}
}

// enough reports whether a thing that was handed over is the waiter's for long enough. kept is when
// the waiter's place was last kept. left is how much longer Redis kept the place when it sent the
// message. It is not enough if Redis knows of less time than the waiter does. That happens with a
// replica that was promoted without the last request that kept the place. It is not enough either
// in the second half of the time for which the place is kept. A late request may have made the place
// anew after a hand-over that has lapsed, so that the waiter did not hear that its place was lost.
// But such a request came within conn.Window, and half of that time is longer.
func (t *Ticket) enough(kept time.Time, left time.Duration) bool {
	now := time.Now()
	age := max(now.Sub(kept), now.Round(0).Sub(kept.Round(0))) // the machine may have slept
	return age < t.Lasts/2 && left >= t.Lasts-age
}

// parseHandOver parses a message that hands something over: the number of the owner, its token, and
// how much longer the owner had the thing at that time. For any other message the token is 0.
func parseHandOver(message string) (owner, token int64, left time.Duration) {
	words := strings.Split(message, " ")
	if len(words) != 3 {
		return 0, 0, 0
	}
	var numbers [3]int64
	for i, word := range words {
		var err error
		if numbers[i], err = strconv.ParseInt(word, 10, 64); err != nil {
			return 0, 0, 0
		}
	}
	return numbers[0], numbers[1], time.Duration(numbers[2]) * time.Millisecond
}
