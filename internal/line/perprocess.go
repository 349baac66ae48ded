// Waiters whose process has one place in the queue that Redis keeps, its seat: the head asks in
// that place, and leaves it to the next head.

package line

import (
	"cmp"
	"time"
)

type perProcess struct{}

// arrive lets the waiter ask outside the queue, unless Redis would refuse: if this Client holds the
// thing; or if it has just left the thing to others.
func (perProcess) arrive(l *Lines, key string) (ask Ask, held, asks bool) {
	held = l.client.Holds(key)
	return Ask{}, held, !held && !l.leftOpen(key)
}

func (perProcess) stand(*line, *waiter) {}

// first follows the first row that applies.
//
//	the process has its seat         until the seat's askBy
//	a message handed the thing over  seatDelay: the next seat is still to be taken, and a release may
//	in the seat                      take it before
//	no answer of its own             none: the seat is still to be taken
//	otherwise                        as line.held says
func (perProcess) first(me *waiter) pause {
	q := me.line
	switch {
	case q.seat.taken():
		return pauseUntil(q.seat.askBy)
	case q.seat.state == seatVacated:
		q.seat = seat{} // the head after this one asks at once
		return pause{seatDelay, seatDue}
	case me.first == (Held{}):
		return pause{}
	default:
		return q.held(me.first)
	}
}

// rest lets the head wait on if it was to ask for the seat, and a release has taken it.
func (perProcess) rest(l *Lines, me *waiter, woke waking) pause {
	if woke.after.then != seatDue {
		return pause{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !me.line.seat.taken() {
		return pause{}
	}
	return pauseUntil(me.line.seat.askBy)
}

// ask makes the head ask as the owner of the seat. If there is no seat, the head's own owner takes
// one.
func (perProcess) ask(l *Lines, me *waiter) (ask Ask, more, ok bool) {
	p, q := &me.place, me.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if me.outcome.Passed != nil {
		return Ask{}, false, false
	}
	me.head.asking = true
	switch q.seat.state {
	case noSeat, seatVacated:
		q.seat = seat{state: seatAsked, owner: me.want.Place.Owner}
	case seatTaking, seatAsked:
		// Whether the place was taken is not known. Without its number Redis cannot tell whether it
		// was lost since then.
		q.seat.state, p.doubt = seatAsked, true
	case seatKept:
	}
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
	switch {
	case !a.Granted:
		q.seat.keep(cmp.Or(ask.Seq, a.Seq), a.Kept)
	case a.NextSeq != 0:
		q.seat.owner = ask.Next
		q.seat.keep(a.NextSeq, a.Kept)
	default:
		q.seat = seat{}
	}
	me.head.got, me.head.asking = a.Granted, a.Granted
	return false
}

// handed takes the thing in the seat.
func (perProcess) handed(me *waiter, by HandOver) bool {
	q := me.line
	if by.Owner != q.seat.owner || !me.accept(by, q.seat.kept) {
		return false
	}
	q.seat = seat{state: seatVacated}
	return true
}

// leave leaves the seat to the next head, except in two cases: a request of the head that leaves
// may still change it, or nobody waits any more and that head was not granted the thing. Then its
// caller must give the seat up: see Outcome.Orphan.
func (perProcess) leave(q *line, me *waiter) {
	waited, holds := q.head != nil, me.head.got || me.outcome.Passed != nil
	if q.seat.taken() && (me.place.doubt && !me.head.got || !waited && !holds) {
		me.outcome.Orphan = q.seat.owner
		q.drop()
	}
	if !holds {
		q.seat.askBy = time.Time{} // at once: the head may have heard a message that it never acted on
	}
}
