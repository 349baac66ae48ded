// Passing a thing on within the process, from a holder to a waiter.

package line

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/pubsub"
)

// Terms are the conditions on which something is held, as far as they matter for passing it on. A
// holder can pass it on only to a waiter of this process with equal Terms. The zero Terms mean that
// nothing is passed on, neither to this holder nor from it.
type Terms struct {
	Lease   time.Duration
	MaxHold time.Duration
}

// Pass gives what a holder of this process has to a waiter for key, if there is one on the same
// terms, and reports whether it did. The waiter finds it in Ticket.Passed or Turn.Passed. If the
// waiter is just giving up, it has it all the same.
//
// The waiter is the first one behind the head, or the head if nobody is behind it. The head keeps
// the process's place in Redis's queue, and is granted the thing from there when it is no longer
// passed on. Nothing is passed to a waiter that is just asking Redis.
func (l *Lines) Pass(key string, terms Terms, what any) bool {
	done, told, ended := l.pass(key, terms, what)
	if ended != nil {
		ended.Close()
	}
	if told != nil {
		told <- struct{}{}
	}
	return done
}

// pass is Pass, except for what must be done without the mutex, which it leaves to its caller: to
// signal the waiter on told (nil if the waiter does not listen yet), and to close ended, the
// subscription of a line that has ended.
func (l *Lines) pass(key string, terms Terms, what any) (done bool, told chan struct{}, ended *pubsub.Subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	if q == nil || q.head == nil {
		return false, nil, nil
	}
	me := q.head
	if me.next != nil {
		me = me.next
	}
	if me.asking || me.terms != terms {
		return false, nil, nil
	}
	me.what, told = what, me.passed
	if me != q.head {
		me.granted, told = true, me.turn
	}
	return true, told, l.remove(me)
}

// ask prepares the head's ticket for a request. It reports false if the thing has been passed to
// the head in the meantime.
func (l *Lines) ask(me *waiter) bool {
	t, q := me.ticket, me.line
	if t == nil || t.Grain != PerProcess {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if me.what != nil {
		return false
	}
	me.asking = true
	switch {
	case q.seat.owner == 0:
		q.seat = seat{owner: t.Owner}
	case q.seat.seq == 0:
		// A release was to take the place, and has not been answered. Its number is not known here,
		// and without the number Redis cannot tell whether the place was lost since then.
		t.Doubt = true
	}
	q.seat.asked = true
	t.Owner, t.Seq = q.seat.owner, q.seat.seq
	switch {
	case me.next == nil && !t.Doubt: // if in doubt, a late request may still take a place for it
		t.Next = 0
	case me.next != nil && t.Next == 0:
		t.Next = l.client.NewOwner()
	}
	return true
}

// answered takes in what the head's ticket says after a request. A head that was granted the thing,
// or whose request failed, leaves; nothing is passed to it any more.
func (l *Lines) answered(me *waiter, v Verdict, err error) {
	t, q := me.ticket, me.line
	if t == nil || t.Grain != PerProcess || err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	q.seat.seq, q.seat.kept, q.seat.heard = t.Seq, t.Kept, time.Now()
	if v.Granted {
		q.seat.owner, q.seat.asked = t.Next, false
	}
	me.got, me.asking = v.Granted, v.Granted
}
