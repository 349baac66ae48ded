// Passing a thing on within the process.

package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/pubsub"
)

// Terms are on what terms something is held, as far as one holder of this process
// can pass it on to the next: theirs must be equal. The zero Terms are those of
// holders that nothing is passed on to, nor from.
type Terms struct {
	Lease   time.Duration
	MaxHold time.Duration
}

// Pass gives a waiter of key, if there is one on the same terms, what a holder of
// this process has: Ticket.Passed, or Turn.Passed. It reports whether it did. The
// waiter may be just giving up; then it has it all the same.
//
// That is the first behind the head, and the head only if nobody is: the head
// keeps the process's place in Redis's queue, and gets the thing from there when it
// is no longer passed on. One that is just asking Redis is not passed anything.
func (e *Engine) Pass(key string, terms Terms, what any) bool {
	done, told, ended := e.lines.pass(key, terms, what)
	if ended != nil {
		ended.Close()
	}
	if told != nil {
		told <- struct{}{}
	}
	return done
}

// pass is Pass but for what must be done without the mutex: what is to tell the
// waiter, nil if it does not listen yet, and the subscription of a line that has
// ended, which is to be closed.
func (l *lines) pass(key string, terms Terms, what any) (done bool, told chan struct{}, ended *pubsub.Subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	if q == nil || q.head == nil {
		return false, nil, nil
	}
	p := q.head
	if p.next != nil {
		p = p.next
	}
	if p.asking || p.terms != terms {
		return false, nil, nil
	}
	p.what, told = what, p.passed
	if p != q.head {
		p.granted, told = true, p.turn
	}
	return true, told, l.remove(p)
}

// ask prepares the head's ticket for a request. It reports false if the thing has
// been passed to the head meanwhile.
func (e *Engine) ask(p *place) bool {
	t, q := p.ticket, p.line
	if t == nil || t.Grain != PerProcess {
		return true
	}
	l := &e.lines
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.what != nil {
		return false
	}
	p.asking = true
	switch {
	case q.seat.owner == 0:
		q.seat = seat{owner: t.Owner}
	case q.seat.seq == 0:
		// A release was to take the place, which is not answered: whether the place was
		// lost since then, Redis cannot tell from a number that is not known.
		t.Doubt = true
	}
	q.seat.asked = true
	t.Owner, t.Seq = q.seat.owner, q.seat.seq
	switch {
	case p.next == nil && !t.Doubt: // else a late request may take a place for it
		t.Next = 0
	case p.next != nil && t.Next == 0:
		t.Next = e.owners.Add(1)
	}
	return true
}

// answered takes in what the head's ticket says after a request. A head that got
// the thing, or fails, leaves, and is not passed anything any more.
func (l *lines) answered(p *place, v Verdict, err error) {
	t, q := p.ticket, p.line
	if t == nil || t.Grain != PerProcess || err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	q.seat.seq, q.seat.kept, q.seat.heard = t.Seq, t.Kept, time.Now()
	if v.Granted {
		q.seat.owner, q.seat.asked = t.Next, false
	}
	p.got, p.asking = v.Granted, v.Granted
}
