// Hand-over by a message: the waiter has the thing without asking for it.

package line

import "time"

// handed reports whether the message hands the thing to the head, and whether that is enough, so
// that the head need not ask.
func (l *Lines) handed(me *waiter, message string) bool {
	if me.want.Place.Grain == NoQueue {
		return false
	}
	by := me.want.Told.HandOver(message)
	if by.Token == 0 {
		return false
	}
	if wide := l.client.Wide; wide != nil && wide(me.line.key) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return me.policy().handed(me, by)
}

// accept gives the head what a message has handed to it, in a place that was last kept at kept. It
// reports false, and the head must ask, unless nothing is in doubt, the hold lasts long enough for
// a renewal to follow, and no waiter is behind the head, for which a request would reserve a token.
// The caller holds the mutex.
func (me *waiter) accept(by HandOver, kept time.Time) bool {
	own := &me.want.Place
	reserves := me.next != nil && own.Terms != (Terms{})
	if me.outcome.Passed != nil || me.place.doubt || reserves || !own.enough(kept, by.Left) {
		return false
	}
	me.outcome.Handed = Handed{HandOver: by, Until: kept.Add(own.Lasts)}
	me.head.got, me.head.asking = true, true
	return true
}

// enough reports whether a thing that was handed over is the waiter's for long enough. kept is when
// the waiter's place was last kept. left is how much longer Redis kept the place when it sent the
// message. It is not enough if Redis knows of less time than the waiter does. That happens with a
// replica that was promoted without the last request that kept the place. It is not enough either
// in the second half of the time for which the place is kept. A late request may have made the place
// anew after a hand-over that has lapsed, so that the waiter did not hear that its place was lost.
// But such a request came within conn.Window, and half of that time is longer; where requests may come
// later, since the server is slow, no hand-over by a message is taken.
func (p *Place) enough(kept time.Time, left time.Duration) bool {
	now := time.Now()
	age := max(now.Sub(kept), now.Round(0).Sub(kept.Round(0))) // the machine may have slept
	return age < p.Lasts/2 && left >= p.Lasts-age
}
