// The seat: a process's place in the queue that Redis keeps, from when it is taken until it is
// given up.

package line

import (
	"slices"
	"time"
)

// seat is a process's place in a queue that Redis keeps. It belongs to the line, not to the head,
// so that it stays when the thing is passed on, and when a head gives up.
type seat struct {
	state seatState
	owner int64     // the number of the owner that has it
	seq   int64     // its number in the queue, once it is kept
	kept  time.Time // no later than when Redis last began to keep it for a while
	askBy time.Time // when a head asks in it at the latest, so that Redis goes on keeping it
}

// seatState is how far a seat has come. The zero state: the process has no seat.
type seatState int

const (
	noSeat seatState = iota
	// seatVacated: there is none, since a message handed the thing over in it. The next head waits
	// for seatDelay before it takes one, because a release may take it first.
	seatVacated
	// seatTaking: a release of this process is to take it, and Seated has not brought its number.
	seatTaking
	// seatAsked: a head has asked as its owner, which may be granted the thing at any time. Its
	// number is not known.
	seatAsked
	// seatKept: its number is known, and Redis keeps it for a while after each request.
	seatKept
)

// taken reports whether the process has a seat, or may have one.
func (s *seat) taken() bool { return s.state > seatVacated }

// keep notes that Redis keeps the seat under that number, since kept. If the answer has no number, what was known
// of the seat stays.
func (s *seat) keep(seq int64, kept time.Time) {
	s.kept, s.askBy = kept, time.Now().Add(PollBound)
	if seq != 0 {
		s.state, s.seq = seatKept, seq
	}
}

// seatDelay is how long the next head of a process that has just been handed the thing waits before
// it takes the process's seat by a request of its own. A release that comes before then takes the
// seat.
const seatDelay = 20 * time.Millisecond

// TakeSeat returns the number of the owner for which the release that follows must take this
// process's seat in Redis's queue for key. It returns 0 if there is no seat to take: the waiters
// for key have none (see Grain), nobody of this process waits, the process has its seat, or the
// head is asking for it or in doubt about it. If it is not 0, Seated must follow.
func (l *Lines) TakeSeat(key string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	if q == nil || q.head == nil || q.head.head.asking || q.seat.taken() {
		return 0
	}
	if q.head.want.Place.Grain != PerProcess || q.head.place.doubt {
		return 0
	}
	// Redis keeps the place from when it is taken, which cannot be before now.
	now := time.Now()
	q.seat = seat{state: seatTaking, owner: l.client.NewOwner(), kept: now, askBy: now.Add(PollBound)}
	q.joining = append(q.joining, q.seat.owner)
	return q.seat.owner
}

// Seated takes in the number of the place that a release was to take for owner; 0 if it took none.
// It reports whether the caller must give that place up, because nobody waits for it any more, or
// because it is not known whether it was taken. It reports false if a head has asked as that owner:
// whatever that head was granted would be given up too.
func (l *Lines) Seated(key string, owner, number int64) (orphan bool) {
	l.mu.Lock()
	q := l.byKey[key] // it exists while owner is in joining
	q.joining = slices.DeleteFunc(q.joining, func(other int64) bool { return other == owner })
	if i := slices.Index(q.dropped, owner); i >= 0 {
		q.dropped, orphan = slices.Delete(q.dropped, i, i+1), true
	}
	if q.seat.owner == owner {
		if number != 0 {
			q.seat.keep(number, q.seat.kept)
		}
		if orphan = q.seat.state == seatTaking || q.head == nil; orphan {
			q.seat = seat{}
		}
	}
	l.unlock(l.endIfEmpty(q))
	return orphan
}

// HasSeat reports whether that owner has this process's seat in Redis's queue for key.
func (l *Lines) HasSeat(key string, owner int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	return q != nil && q.seat.owner == owner
}

// Abandon returns the number of the owner that has this process's seat in Redis's queue for key, if
// nobody of this process waits for key any more, else 0. From then on the caller must give that
// seat up. Code that ends a hold must call Abandon.
func (l *Lines) Abandon(key string) int64 {
	l.mu.Lock()
	q := l.byKey[key]
	if q == nil || q.head != nil {
		l.mu.Unlock()
		return 0
	}
	abandoned := q.seat.owner
	q.drop()
	l.unlock(l.endIfEmpty(q))
	return abandoned
}

// drop leaves the line without a seat. If a release is just taking the seat, that release must give
// it up as well, because it may reach Redis later than the caller's request.
func (q *line) drop() {
	if slices.Contains(q.joining, q.seat.owner) {
		q.dropped = append(q.dropped, q.seat.owner)
	}
	q.seat = seat{}
}
