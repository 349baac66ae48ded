// A process's place in the queue that Redis keeps: who has it, and when it is taken and
// given up.

package engine

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// seat is a process's place in a queue that Redis keeps. It is the line's, not its
// head's, so that it stays when the thing is passed on, or when the head gives up.
type seat struct {
	owner int64     // the number of the owner that has it; 0: none has
	seq   int64     // its number in the queue
	kept  time.Time // no later than when Redis began to keep it for its while
	heard time.Time // when Redis last said that it does, or was to be asked to
	asked bool      // a head has asked as its owner: it may be granted the thing at any time
}

// seatDelay is how long the next of a process, which has just been handed the thing,
// waits before it takes the process's place in Redis's queue by a request of its
// own: a release that comes before takes it.
const seatDelay = 20 * time.Millisecond

// TakeSeat returns the number of the owner that is to take this process's place in
// Redis's queue for key with the release that follows; 0 if nobody of it waits, or
// it has its place. If it is not 0, Seated must follow.
func (e *Engine) TakeSeat(key string) int64 {
	l := &e.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	if q == nil || q.head == nil || q.head.asking || q.seat.owner != 0 {
		return 0
	}
	// One that has just come to lead by Follow has no ticket yet, but terms.
	switch t := q.head.ticket; {
	case t == nil && q.head.terms == (Terms{}), t != nil && (t.Grain != PerProcess || t.Doubt):
		return 0
	}
	// The place is kept from its taking, which cannot be before now.
	now := time.Now()
	q.seat = seat{owner: e.owners.Add(1), kept: now, heard: now}
	q.joining = append(q.joining, q.seat.owner)
	return q.seat.owner
}

// Seated takes in what number the place has that a release was to take for that
// owner; 0: none. It reports whether the caller is to give that place up: because
// nobody waits for it any more, or because it is not known whether it was taken. It
// is not to if a head has asked as that owner: what it was granted would go with it.
func (e *Engine) Seated(key string, owner, number int64) (orphan bool) {
	l := &e.lines
	l.mu.Lock()
	q := l.byKey[key] // it stands while joining says so
	q.joining = slices.DeleteFunc(q.joining, func(other int64) bool { return other == owner })
	if i := slices.Index(q.dropped, owner); i >= 0 {
		q.dropped, orphan = slices.Delete(q.dropped, i, i+1), true
	}
	if q.seat.owner == owner {
		if number != 0 {
			q.seat.seq, q.seat.heard = number, time.Now()
		}
		if orphan = number == 0 && !q.seat.asked || q.head == nil; orphan {
			q.seat = seat{}
		}
	}
	ended := l.endIfEmpty(q)
	l.mu.Unlock()
	if ended != nil {
		ended.Close()
	}
	return orphan
}

// HasSeat reports whether that owner has this process's place in Redis's queue for key.
func (e *Engine) HasSeat(key string, owner int64) bool {
	l := &e.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	return q != nil && q.seat.owner == owner
}

// rest returns for how long the head need not ask though its timer has run out: what
// it was to ask for, the process's place, a release has taken.
func (l *lines) rest(p *place, reason string) time.Duration {
	unseated := p.unseated
	p.unseated = false // whatever woke it, it asks now, and knows then when to ask again
	if reason != telemetry.WokenTimer || !unseated {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.line.seat.owner == 0 {
		return 0
	}
	return time.Until(p.line.seat.heard.Add(PollBound))
}

// Abandon returns the number of the owner that has this process's place in Redis's
// queue for key, if nobody of this process waits for key any more; or 0. From then
// on it is the caller's to give up. Whoever ends a hold must ask.
func (e *Engine) Abandon(key string) int64 {
	l := &e.lines
	l.mu.Lock()
	q := l.byKey[key]
	if q == nil || q.head != nil {
		l.mu.Unlock()
		return 0
	}
	abandoned := q.seat.owner
	q.drop()
	ended := l.endIfEmpty(q)
	l.mu.Unlock()
	if ended != nil {
		ended.Close()
	}
	return abandoned
}

// drop leaves the line without a seat. A release that is just taking it must give it
// up, too, since that may come later.
func (q *line) drop() {
	if slices.Contains(q.joining, q.seat.owner) {
		q.dropped = append(q.dropped, q.seat.owner)
	}
	q.seat = seat{}
}

// unseat sees to the seat of a line whose head leaves. It stays for whoever comes
// next, but for one that requests of the head may still change, and one that nobody
// is there for: the head is to give those up.
func (q *line) unseat(p *place) {
	t := p.ticket
	if t == nil || t.Grain != PerProcess {
		return
	}
	waited, holds := q.head != nil, p.got || p.what != nil
	if q.seat.owner != 0 && (t.Doubt && !p.got || !waited && !holds) {
		t.Orphan = q.seat.owner
		q.drop()
	}
	if !holds {
		q.seat.heard = time.Time{} // it may have been told something that it never acted on
	}
}
