// Waiters whose process has one place in the queue that Redis keeps, its seat: the head asks in
// that place, and leaves it to the next head.

package line

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// perProcess is the policy of PerProcess.
type perProcess struct{}

// first has the waiter ask outside the queue, unless Redis would refuse: if this Client holds the
// thing; or if it has just left the thing to others.
func (perProcess) first(l *Lines, key string) (ask Ask, held, asks bool) {
	held = l.client.Holds(key)
	return Ask{}, held, !held && !l.leftOpen(key)
}

func (perProcess) stand(*line, *waiter) {}

// quiet follows the first row that applies.
//
//	the process has its seat         until PollBound after Redis was last heard to keep it; not
//	                                 at all if the head before it may have left with a message
//	                                 that it never acted on: see leave
//	the last grant was by a message  seatDelay: the seat is still to be taken, and a release may
//	                                 take it first
//	no answer of its own             not at all: the seat is still to be taken
//	otherwise                        as line.held says
func (perProcess) quiet(me *waiter) time.Duration {
	q := me.line
	switch {
	case q.seat.owner != 0:
		return max(0, time.Until(q.seat.heard.Add(PollBound)))
	case q.handed:
		me.head.unseated = true
		return seatDelay
	case me.first == (Held{}):
		return 0
	default:
		return q.held(me.first)
	}
}

// rest lets the head wait on although its timer has run out, if the seat, which it was to ask for,
// has been taken by a release.
func (perProcess) rest(l *Lines, me *waiter, reason string) time.Duration {
	unseated := me.head.unseated
	me.head.unseated = false // whatever woke it, it asks now, or knows when to
	if reason != telemetry.WokenTimer || !unseated {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if me.line.seat.owner == 0 {
		return 0
	}
	return time.Until(me.line.seat.heard.Add(PollBound))
}

// ask has the head ask as the owner of the seat. If there is no seat, the head's own owner takes
// one.
func (perProcess) ask(l *Lines, me *waiter) (ask Ask, more, ok bool) {
	p, q := &me.place, me.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if me.outcome.Passed != nil {
		return Ask{}, false, false
	}
	me.head.asking = true
	switch {
	case q.seat.owner == 0:
		q.seat = seat{owner: me.wait.Place.Owner}
	case q.seat.seq == 0:
		// A release was to take the place, and has not been answered. Its number is not known here,
		// and without the number Redis cannot tell whether the place was lost since then.
		p.doubt = true
	}
	q.seat.asked = true
	switch {
	case me.next == nil && !p.doubt: // if in doubt, a late request may still take a place for it
		p.next = 0
	case me.next != nil && p.next == 0:
		p.next = l.client.NewOwner()
	}
	return Ask{Owner: q.seat.owner, InQueue: true, Seq: q.seat.seq, Next: p.next}, false, true
}

// answered keeps what the answer says about the seat. After a grant the seat is the next owner's,
// if that owner got a place.
func (perProcess) answered(l *Lines, me *waiter, ask Ask, a Answer, err error) (nudged bool) {
	q := me.line
	l.mu.Lock()
	defer l.mu.Unlock()
	me.place.doubt = me.place.doubt || a.Doubt
	if err != nil {
		return false // it leaves, and nothing is passed to it any more
	}
	q.seat.seq, q.seat.kept, q.seat.heard = ask.Seq, a.Kept, time.Now()
	switch {
	case a.Granted:
		q.seat.owner, q.seat.seq, q.seat.asked = ask.Next, a.NextSeq, false
		if a.NextSeq == 0 {
			q.seat.owner = 0
		}
	case ask.Seq == 0:
		q.seat.seq = a.Seq
	}
	me.head.got, me.head.asking = a.Granted, a.Granted
	return false
}

// handed takes the thing in the seat. The next head has a seat still to take.
func (perProcess) handed(me *waiter, by HandOver) bool {
	q := me.line
	if by.Owner != q.seat.owner || !me.accept(by, q.seat.kept) {
		return false
	}
	q.seat, q.handed = seat{}, true
	return true
}

// leave leaves the seat to the next head, except in two cases: a request of the head that leaves
// may still change it, or nobody waits any more and that head was not granted the thing. Then its
// caller must give the seat up: see Outcome.Orphan.
func (perProcess) leave(q *line, me *waiter) {
	waited, holds := q.head != nil, me.head.got || me.outcome.Passed != nil
	if q.seat.owner != 0 && (me.place.doubt && !me.head.got || !waited && !holds) {
		me.outcome.Orphan = q.seat.owner
		q.drop()
	}
	if !holds {
		q.seat.heard = time.Time{} // the head may have been told something that it never acted on
	}
}
