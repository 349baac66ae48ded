// Being handed the thing by a message, and the place in Redis's queue that is taken
// with a release.

package engine

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// seatDelay is how long the next of a process, which has just been handed the thing,
// waits before it takes the process's place in Redis's queue by a request of its
// own: a release that comes before takes it.
const seatDelay = 20 * time.Millisecond

// handed reports whether the message hands the thing to the head, and whether that
// is enough. It is if nothing is in doubt, if the thing is the head's for long
// enough to see to the rest later, and if nobody is there for whom a request would
// reserve something.
func (l *lines) handed(p *place, message string) bool {
	t, q := p.ticket, p.line
	owner, token, left := parseHandOver(message)
	if t == nil || token == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	own, kept := t.Owner, t.Kept
	if t.Grain == PerProcess {
		own, kept = q.seat.owner, q.seat.kept
	}
	reserves := p.next != nil && p.terms != (Terms{})
	if owner != own || p.what != nil || t.Doubt || reserves || !t.enough(kept, left) {
		return false
	}
	t.Owner, t.Kept, t.Token, t.Left = own, kept, token, left
	p.got, p.asking = true, true
	if t.Grain == PerProcess {
		t.Next, q.seat, q.handed = 0, seat{}, true
	}
	return true
}

// enough reports whether what was handed over, which had left to go then, is the
// waiter's for long enough, in a place that was last kept at that time. It is not if
// Redis knows of less than the waiter does: as a replica does that was promoted, and
// has not heard of the last time.
func (t *Ticket) enough(kept time.Time, left time.Duration) bool {
	now := time.Now()
	age := max(now.Sub(kept), now.Round(0).Sub(kept.Round(0))) // the machine may have slept
	return age < t.Lasts/2 && left >= t.Lasts-age
}

// parseHandOver returns what a message that hands something over says: the number of
// the owner, its token, and how long it had it then. Of any other the token is 0.
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
