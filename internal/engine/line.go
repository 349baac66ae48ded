package engine

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/pubsub"
)

// lines are the local queues: one for each name that more than one goroutine of
// this process waits for, or one goroutine in vain. Only the head of a line
// talks to Redis.
type lines struct {
	mu    sync.Mutex
	byKey map[string]*line
}

// line is the queue of one name.
type line struct {
	key  string
	head *place // who talks to Redis; nil never, while the line exists
	tail *place

	// What one head hands to the next. Only the head touches it.
	sub       *pubsub.Subscription // from the first busy answer on
	heldUntil time.Time            // the last grant went to this process, and lasts at most until then
}

// place is one goroutine's place in a line.
type place struct {
	line *line
	prev *place
	next *place
	turn chan struct{} // closed when the place is the head, or granted

	granted bool      // written before turn is closed: what a head got is this one's too
	since   time.Time // when it joined
}

// empty reports whether nobody waits for key.
func (l *lines) empty(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byKey[key] == nil
}

// join puts the caller at the end of key's line.
func (l *lines) join(key string) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byKey == nil {
		l.byKey = make(map[string]*line)
	}
	p := &place{turn: make(chan struct{}), since: time.Now()}
	q := l.byKey[key]
	if q == nil {
		q = &line{key: key}
		l.byKey[key] = q
	}
	p.line, p.prev = q, q.tail
	if q.tail == nil {
		q.head = p
		close(p.turn)
	} else {
		q.tail.next = p
	}
	q.tail = p
	return p
}

// grantAll lets everybody behind the head go with what the head was granted.
func (l *lines) grantAll(q *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := q.head.next; p != nil; p = p.next {
		p.granted = true
		close(p.turn)
	}
	q.head.next, q.tail = nil, q.head
}

// leave takes p out of its line; if it was the head, the next one is.
func (l *lines) leave(p *place) {
	l.mu.Lock()
	if p.granted { // it was taken out already
		l.mu.Unlock()
		return
	}
	q := p.line
	if p.prev != nil {
		p.prev.next = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	}
	if q.tail == p {
		q.tail = p.prev
	}
	if q.head == p {
		q.head = p.next
		if q.head != nil {
			close(q.head.turn)
		} else {
			delete(l.byKey, q.key)
		}
	}
	ended := q.head == nil
	l.mu.Unlock()
	if ended && q.sub != nil {
		q.sub.Close()
	}
}

// await waits until p is the head. It reports whether it was so at once.
func (p *place) await(ctx, closing context.Context) (atOnce bool, err error) {
	select {
	case <-p.turn:
		return true, nil
	default:
	}
	select {
	case <-p.turn:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-closing.Done():
		return false, context.Cause(closing)
	}
}

// quiet returns for how long the new head need not ask. If the head before it
// got the thing, nothing is free before the line hears of it. If the new head
// has just asked by itself, the answer holds until then. Otherwise it asks now:
// the head before it may have left with a message that it never acted on.
func (q *line) quiet(first Verdict) time.Duration {
	heldUntil := q.heldUntil
	q.heldUntil = time.Time{}
	switch {
	case !heldUntil.IsZero():
		return max(0, nap(time.Until(heldUntil)))
	case first.For != 0:
		return nap(first.For)
	default:
		return 0
	}
}
