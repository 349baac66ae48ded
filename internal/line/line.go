// One line: the waiters of one Client for one name, in their order.

package line

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/pubsub"
)

// line is the line of one name.
type line struct {
	key  string
	head *waiter // the waiter that talks to Redis
	tail *waiter

	// What one head leaves to the next. Only the head touches it.
	sub       *pubsub.Subscription // set once a head has subscribed
	heldUntil time.Time            // the last grant went to this process, and lasts at most until then
	due       []string             // the waiters whose places in Redis's queue are still to be kept
	beaten    time.Time            // when due was last filled

	// What follows is guarded by Lines.mu.
	seat    seat
	handed  bool    // the last grant was by a message: the next head has the seat still to take
	joining []int64 // the owners for which releases under way take a place
	dropped []int64 // those of them whose place nobody wants any more
}

// waiter is one goroutine in a line.
type waiter struct {
	line *line
	prev *waiter
	next *waiter
	turn chan struct{} // holds one signal: the waiter is the head, or granted
	out  bool          // it is no longer in the line

	granted bool      // written before the signal: the waiter has what it waits for
	since   time.Time // when it joined, where that counts: see overtaking

	ticket *Ticket       // nil where Redis keeps no queue, and while it follows: see Follow
	nudged chan struct{} // holds one signal: what the head was told concerns this waiter
	passed chan struct{} // of the head: holds one signal once what is set
	terms  Terms         // on which something may be passed on to the waiter
	what   any           // what was passed on to it; nil: nothing
	asking bool          // the head asks Redis, or subscribes: nothing may be passed to it
	got    bool          // the head was granted the thing by Redis
	// unseated says that the head has the process's seat still to ask for, unless a release takes
	// it first. Only the head touches it.
	unseated bool
}

// stage is what a waiter is to do.
type stage int

const (
	leading stage = iota // it is the head
	granted              // it has what it waits for
	nudged               // it is to try once, and then to go on waiting
)

// empty reports whether there is no line for key.
func (l *Lines) empty(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byKey[key] == nil
}

// join puts the caller at the end of key's line. With a ticket of the grain PerWaiter it goes where
// its number belongs: behind the waiters that Redis has put before it.
func (l *Lines) join(key string, t *Ticket) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = make(map[string]*line)
	}
	me := &waiter{turn: make(chan struct{}, 1), ticket: t}
	q := l.byKey[key]
	if q == nil {
		q = &line{key: key}
		l.byKey[key] = q
	}
	me.line, me.prev = q, q.tail
	if t != nil {
		me.terms = t.Terms
	}
	if t != nil && t.Grain == PerWaiter {
		me.nudged = make(chan struct{}, 1)
		// Never before the head, which has the line's subscription in its hands.
		for me.prev != nil && me.prev != q.head && t.Seq < me.prev.ticket.Seq {
			me.prev = me.prev.prev
		}
		if q.head != nil && t.Seq <= q.head.ticket.Seq {
			// Redis heard of this waiter before the head, and may have handed it the thing before
			// it stood in this line. A reply to the head, or a message, said so, but did not find
			// it here to be nudged.
			me.nudge()
		}
	}
	q.insert(me)
	return me
}

// insert links the waiter in behind its prev. If it has none, it is the head of a new line.
func (q *line) insert(me *waiter) {
	if me.prev == nil {
		q.head, q.tail = me, me
		me.turn <- struct{}{}
		return
	}
	me.next, me.prev.next = me.prev.next, me
	if me.next != nil {
		me.next.prev = me
	} else {
		q.tail = me
	}
}

// grantAll gives every waiter behind the head what the head was granted.
func (l *Lines) grantAll(q *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for me := q.head.next; me != nil; me = me.next {
		me.granted, me.out = true, true
		me.turn <- struct{}{}
	}
	q.head.next, q.tail = nil, q.head
}

// leave takes the waiter out of its line. It reports whether the waiter has been passed what it
// waited for.
func (l *Lines) leave(me *waiter) (passed bool) {
	l.mu.Lock()
	var ended *pubsub.Subscription
	if !me.out {
		ended = l.remove(me)
	}
	if passed = me.what != nil; passed {
		me.ticket.Passed = me.what
	}
	l.mu.Unlock()
	if ended != nil {
		ended.Close()
	}
	return passed
}

// remove takes the waiter out of its line. If it was the head, the next waiter is the head now. If
// the line has ended with it, remove returns the line's subscription, which the caller must close.
// The caller holds the mutex.
func (l *Lines) remove(me *waiter) (ended *pubsub.Subscription) {
	q := me.line
	me.out = true
	if me.prev != nil {
		me.prev.next = me.next
	}
	if me.next != nil {
		me.next.prev = me.prev
	}
	if q.tail == me {
		q.tail = me.prev
	}
	if q.head != me {
		return nil
	}
	q.head = me.next
	q.unseat(me)
	if q.head != nil {
		q.head.turn <- struct{}{}
	}
	return l.endIfEmpty(q)
}

// endIfEmpty ends a line that has no waiter, no seat, and no release that takes one. It then
// returns the line's subscription, which the caller must close. The caller holds the mutex.
func (l *Lines) endIfEmpty(q *line) (ended *pubsub.Subscription) {
	if q.head != nil || q.seat.owner != 0 || len(q.joining) > 0 {
		return nil
	}
	delete(l.byKey, q.key)
	return q.sub
}

// leads reports whether the waiter is the head, or has been granted what it waits for, and its
// goroutine has not been told so yet.
func (me *waiter) leads() bool { return len(me.turn) > 0 }

// await waits until the waiter has something to do, ctx ends, or the Client closes.
func (me *waiter) await(ctx, closing context.Context) (stage, error) {
	if me.leads() {
		<-me.turn
		return me.arrived(), nil
	}
	select {
	case <-me.turn:
		return me.arrived(), nil
	case <-me.nudged:
		return nudged, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-closing.Done():
		return 0, context.Cause(closing)
	}
}

func (me *waiter) arrived() stage {
	if me.granted {
		return granted
	}
	return leading
}

// quiet returns for how long the new head need not ask. The first row that applies counts. nap
// limits a time that comes from a grant or an answer.
//
//	the process has its seat         until PollBound after Redis was last heard to keep it; not
//	                                 at all if the head before it may have left with a message
//	                                 that it never acted on: see unseat
//	the last grant was by a message  seatDelay: the seat is still to be taken, and a release may
//	                                 take it first
//	FairMutex, others behind it,     not at all: their places must be kept
//	beat is over
//	Mutex, no answer of its own      not at all: the seat is still to be taken
//	the last grant came to this      until that grant is over: nothing is free before the line
//	process                          hears of it
//	it has just asked by itself      as long as that answer says
//	otherwise                        not at all: the head before it may have left with a message
//	                                 that it never acted on
func (me *waiter) quiet(first Verdict) time.Duration {
	q := me.line
	heldUntil, handed := q.heldUntil, q.handed
	q.heldUntil, q.handed = time.Time{}, false
	switch {
	case q.seat.owner != 0:
		return max(0, time.Until(q.seat.heard.Add(PollBound)))
	case handed:
		me.unseated = true
		return seatDelay
	case me.next != nil && me.ticket != nil && me.ticket.Grain == PerWaiter && time.Since(q.beaten) >= beat:
		return 0
	case me.ticket != nil && me.ticket.Grain == PerProcess && first.For == 0:
		return 0
	case !heldUntil.IsZero():
		if left := time.Until(heldUntil); left > 0 {
			return nap(left)
		}
		return 0
	case first.For != 0:
		return nap(first.For)
	default:
		return 0
	}
}
