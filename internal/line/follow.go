// Waiting behind others of the process for something to be passed on.

package line

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Turn is the result of Follow.
type Turn struct {
	// Passed is what a holder of this process has passed on to the waiter.
	Passed any

	waiter *waiter
}

// Leads reports whether the waiter is in a line and is now its head. Its wait then goes on with
// Lead.
func (t Turn) Leads() bool { return t.waiter != nil }

// Follow waits for key behind others of this process, if the head of key's line waits on the same
// terms. It returns when the thing is passed on to the waiter, when the waiter becomes the head, or
// when ctx ends. If there is nobody to follow, it returns the zero Turn at once. Follow asks Redis
// for nothing: only the head of a line asks, so whatever a request needs is made only for a head.
//
// When the Client closes, the head leaves the line, then the next head, and so on.
func (l *Lines) Follow(ctx context.Context, kind, key string, terms Terms) (Turn, error) {
	me := l.follow(key, terms)
	if me == nil {
		return Turn{}, nil
	}
	l.client.Telemetry.Waiting(kind, 1)
	defer l.client.Telemetry.Waiting(kind, -1)
	select {
	case <-me.turn:
	case <-ctx.Done():
		if l.giveUp(me) {
			return Turn{}, busy(ctx.Err())
		}
		<-me.turn
	}
	if !me.granted {
		return Turn{waiter: me}, nil
	}
	l.client.Telemetry.Woken(kind, telemetry.WokenTurn)
	passed := me.what
	*me = waiter{turn: me.turn}
	l.spare.Put(me)
	return Turn{Passed: passed}, nil
}

// Lead is Wait for a waiter that has become the head of its line by Follow.
func (l *Lines) Lead(ctx context.Context, w Waiting, t Turn) error {
	l.equip(t.waiter, w.Ticket)
	l.client.Telemetry.Waiting(w.Kind, 1)
	defer l.client.Telemetry.Waiting(w.Kind, -1)
	return l.gone(w, t.waiter, l.waitAsHead(ctx, w, t.waiter, Verdict{}))
}

// follow puts the caller at the end of key's line. It returns nil if that line has no head on those
// terms.
func (l *Lines) follow(key string, terms Terms) *waiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	if q == nil || q.head == nil || q.head.terms != terms {
		return nil
	}
	me, _ := l.spare.Get().(*waiter)
	if me == nil {
		me = &waiter{turn: make(chan struct{}, 1)}
	}
	me.line, me.prev, me.terms = q, q.tail, terms
	q.insert(me)
	return me
}

// giveUp takes the waiter out of its line. It reports false if the waiter has just become the head,
// or has just got what it waits for. Its goroutine then has been told so, or is about to be told.
func (l *Lines) giveUp(me *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if me.out || me == me.line.head {
		return false
	}
	l.remove(me)
	return true
}

// equip gives a head the ticket with which it asks.
func (l *Lines) equip(me *waiter, t *Ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	me.ticket = t
}
