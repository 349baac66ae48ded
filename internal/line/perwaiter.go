// Waiters that have a place each in the queue that Redis keeps: the head keeps the places of those
// behind it, and nudges those that must ask.

package line

import "time"

// perWaiter is the policy of PerWaiter.
//
// The head never takes a place for another waiter, which may just be leaving. A waiter behind the
// head whose place is gone is nudged to ask.
type perWaiter struct{}

// beat is the least time from one keeping of the places behind the head to the next. It is a little longer than the
// usual poll, so that each second poll keeps them, and no place goes without that for longer than two polls. That is
// half of the time for which a FairMutex's place is kept.
const beat = PollBound

// beats is how many places one request keeps at most, so that it does not keep Redis from
// others for long.
const beats = 200

// arrive makes each waiter ask, which gives it its place.
func (perWaiter) arrive(l *Lines, key string) (ask Ask, held, asks bool) {
	return Ask{InQueue: true, Follows: !l.empty(key)}, false, true
}

// stand puts the waiter behind those that Redis has put before it.
func (perWaiter) stand(q *line, me *waiter) {
	me.nudged = make(chan struct{}, 1)
	// Never before the head, which has the line's subscription in its hands.
	for me.prev != nil && me.prev != q.head && me.place.seq < me.prev.place.seq {
		me.prev = me.prev.prev
	}
	if q.head != nil && me.place.seq <= q.head.place.seq {
		// Redis heard of this waiter before the head, and may have handed it the thing before it
		// stood in this line. A reply to the head, or a message, said so, but did not find it here
		// to be nudged.
		me.nudge()
	}
}

// first lets the head ask at once if others are behind it whose places are to be kept: because the
// beat is over, or because the head before it has left in the middle of that.
func (perWaiter) first(me *waiter) pause {
	q := me.line
	if me.next != nil && (len(q.due) > 0 || time.Since(q.beaten) >= beat) {
		return pause{}
	}
	return q.held(me.first)
}

func (perWaiter) rest(*Lines, *waiter, waking) pause { return pause{} }

// ask says whose places the head's request keeps: most of the time none. If more are due than one
// request keeps, another must follow.
func (perWaiter) ask(l *Lines, me *waiter) (ask Ask, more, ok bool) {
	q := me.line
	if now := time.Now(); len(q.due) == 0 && now.Sub(q.beaten) >= beat {
		q.due, q.beaten = l.behind(me), now
	}
	n := min(len(q.due), beats)
	ask = Ask{Owner: me.want.Place.Owner, InQueue: true, Seq: me.place.seq, Behind: q.due[:n]}
	q.due = q.due[n:]
	return ask, len(q.due) > 0, true
}

// askAgain returns the request of a waiter that was nudged.
func (perWaiter) askAgain(l *Lines, me *waiter) Ask {
	return Ask{Owner: me.want.Place.Owner, InQueue: true, Seq: me.place.seq, Follows: l.follows(me)}
}

func (l *Lines) behind(me *waiter) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []string
	for at := me.next; at != nil; at = at.next {
		ids = append(ids, at.want.Place.ID)
	}
	return ids
}

// follows reports whether the head of the line is before this waiter in Redis's queue too. Of two
// waiters that came at once, the one that Redis heard of first may be the second to join the line.
func (l *Lines) follows(me *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	head := me.line.head
	return head == me || head.place.seq <= me.place.seq
}

// answered nudges those behind the head that the answer says must ask.
func (perWaiter) answered(l *Lines, me *waiter, _ Ask, a Answer, err error) (nudged bool) {
	me.place.heard(a, err)
	if err != nil || len(a.Nudge) == 0 {
		return false
	}
	ids := make(map[string]bool, len(a.Nudge))
	for _, id := range a.Nudge {
		ids[id] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := ids[me.want.Place.ID]
	for at := me.next; at != nil; at = at.next {
		if all || ids[at.want.Place.ID] {
			nudged = true
			at.nudge()
		}
	}
	return nudged
}

// nudge makes the waiter try once, and then go on waiting.
func (me *waiter) nudge() {
	select {
	case me.nudged <- struct{}{}:
	default:
	}
}

// handed nudges the waiter that the message is for, if that waiter stands behind the head: it asks
// at once.
func (perWaiter) handed(me *waiter, by HandOver) bool {
	if by.Owner == me.want.Place.Owner {
		return me.accept(by, me.place.kept)
	}
	for at := me.next; at != nil; at = at.next {
		if at.want.Place.Owner == by.Owner {
			at.nudge()
			break
		}
	}
	return false
}

func (perWaiter) leave(*line, *waiter) {}
