// One line: the waiters of one Client for one name, in their order.

package line

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/pubsub"
)

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
	joining []int64 // the owners for which releases under way take a place
	dropped []int64 // those of them whose place nobody wants any more
}

type waiter struct {
	prev  *waiter
	next  *waiter
	line  *line
	turn  chan struct{} // holds one signal: the waiter is the head, or granted
	terms Terms         // those of wait
	head  heading       // what it has as the head

	out     bool  // it is no longer in the line
	granted bool  // written before the signal: the waiter has what it waits for
	over    error // written before the signal: the wait has ended with this error, like that of all in the line
	outcome Outcome

	want   *Want         // what its caller wants
	first  Held          // what the request said with which it came; zero: it did not ask, or long ago
	since  time.Time     // when it joined, where that counts: see overtaking
	place  place         // in the queue that Redis keeps
	nudged chan struct{} // holds one signal: the waiter is to ask; nil where none is nudged
}

// place is a waiter's place in the queue that Redis keeps, as its line knows it.
type place struct {
	seq   int64     // its number, if each waiter has a place
	kept  time.Time // when the last request that has kept it was sent, if each waiter has a place
	doubt bool      // a request may still change something in it: see Answer.Doubt. It stays so
	next  int64     // see Ask.Next
}

// heading is what a waiter has while it is the head.
type heading struct {
	passed chan struct{} // holds one signal once something was passed to it
	asking bool          // it asks Redis, or subscribes: nothing may be passed to it
	got    bool          // Redis has granted it the thing
}

func (l *Lines) empty(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byKey[key] == nil
}

// Any reports whether there is a line: somebody waits, or has a seat.
func (l *Lines) Any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byKey) > 0
}

// follow puts the caller at the end of its line. It returns nil if there is no line, or if the
// caller must ask before it joins.
func (l *Lines) follow(w *Want) *waiter {
	if w.Place.Grain == PerWaiter {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[w.Key]
	if q == nil {
		return nil
	}
	return l.add(q, w, Answer{})
}

// join puts the caller, which was answered first, in its line. If there is none, a new one begins.
func (l *Lines) join(w *Want, first Answer) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = make(map[string]*line)
	}
	q := l.byKey[w.Key]
	if q == nil {
		q = &line{key: w.Key}
		l.byKey[w.Key] = q
	}
	return l.add(q, w, first)
}

// add makes a waiter, and puts it in the line. The caller holds the mutex.
func (l *Lines) add(q *line, w *Want, first Answer) *waiter {
	me, _ := l.spare.Get().(*waiter)
	if me == nil {
		me = &waiter{turn: make(chan struct{}, 1)}
	}
	me.want, me.terms, me.first, me.line, me.prev = w, w.Place.Terms, first.Held, q, q.tail
	me.outcome.Waited = true
	me.place = place{seq: first.Seq, kept: first.Kept, doubt: first.Doubt}
	if w.Weight > 0 {
		me.since = time.Now()
	}
	me.policy().stand(q, me)
	q.insert(me)
	if q.head != me {
		me.first = Held{} // too old to rely on by the time it leads
	}
	return me
}

func (me *waiter) policy() policy { return me.want.Place.Grain.policy() }

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

// endAll gives every waiter behind the head what the head was granted, or the error that ends its wait too.
func (l *Lines) endAll(q *line, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for me := q.head.next; me != nil; {
		next := me.next // once it is notified, it is its goroutine's alone
		me.granted, me.out, me.over = err == nil, true, err
		me.turn <- struct{}{}
		me = next
	}
	q.head.next, q.tail = nil, q.head
}

// leave takes the waiter out of its line, and returns how its wait has ended.
func (l *Lines) leave(me *waiter) Outcome {
	l.mu.Lock()
	var ended *pubsub.Subscription
	if !me.out {
		ended = l.remove(me)
	}
	outcome := me.outcome
	l.unlock(ended)
	return outcome
}

// unlock gives the mutex back, and then closes the subscription of a line that has ended; nil: none has.
func (l *Lines) unlock(ended *pubsub.Subscription) {
	l.mu.Unlock()
	if ended != nil {
		ended.Close()
	}
}

// remove takes the waiter out of its line. If it was the head, the next waiter is the head now. If
// the line has ended with it, remove returns the line's subscription, for unlock. The caller holds the
// mutex.
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
	me.policy().leave(q, me)
	if q.head != nil {
		q.head.turn <- struct{}{}
	}
	return l.endIfEmpty(q)
}

// endIfEmpty ends a line that has no waiter, no seat, and no release that takes one. It then
// returns the line's subscription, for unlock. The caller holds the mutex.
func (l *Lines) endIfEmpty(q *line) (ended *pubsub.Subscription) {
	if q.head != nil || q.seat.taken() || len(q.joining) > 0 {
		return nil
	}
	delete(l.byKey, q.key)
	return q.sub
}

// ending returns the channel by which a waiter behind the head hears that the Client closes. A
// waiter that something may be passed to does not listen for that, because all such waiters would
// meet at one channel, and passing on would cost more: when the Client closes, the head leaves the
// line, then the next head, and so on.
func (l *Lines) ending(me *waiter) <-chan struct{} {
	if me.terms != (Terms{}) {
		return nil
	}
	return l.closing(me.want).Done()
}
