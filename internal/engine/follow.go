// Waiting behind others of the process, for what is passed on within it.

package engine

import "context"

// Turn is how Follow ended.
type Turn struct {
	// Passed is what a holder of this process has passed on.
	Passed any

	place *place
}

// Leads reports whether the waiter has a place, and is the first in line now: the
// wait goes on with Lead.
func (t Turn) Leads() bool { return t.place != nil }

// Follow waits for key behind others of this process, if some wait on the same
// terms, until the thing is passed on, the waiter leads, or ctx ends. Otherwise it
// returns the zero Turn at once. It asks Redis for nothing: nobody but the head of a
// line does, so that all that a request needs is made only for a head.
//
// When the Client closes, the head of the line leaves, and then one after the other.
func (e *Engine) Follow(ctx context.Context, kind, key string, terms Terms) (Turn, error) {
	p := e.lines.follow(key, terms)
	if p == nil {
		return Turn{}, nil
	}
	e.Telemetry.Waiting(kind, 1)
	defer e.Telemetry.Waiting(kind, -1)
	select {
	case <-p.turn:
	case <-ctx.Done():
		if e.lines.giveUp(p) {
			return Turn{}, busy(ctx.Err())
		}
		<-p.turn
	}
	if !p.granted {
		return Turn{place: p}, nil
	}
	e.Telemetry.Woken(kind, "turn")
	passed := p.what
	*p = place{turn: p.turn}
	e.lines.spare.Put(p)
	return Turn{Passed: passed}, nil
}

// Lead is Wait for one who has come to lead its line by Follow.
func (e *Engine) Lead(ctx context.Context, w Waiting, t Turn) error {
	e.lines.equip(t.place, w.Ticket)
	e.Telemetry.Waiting(w.Kind, 1)
	defer e.Telemetry.Waiting(w.Kind, -1)
	return e.gone(w, t.place, e.waitAsHead(ctx, w, t.place, Verdict{}))
}

// follow puts the caller at the end of key's line. It returns nil if nobody leads it
// on those terms.
func (l *lines) follow(key string, terms Terms) *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.byKey[key]
	if q == nil || q.head == nil || q.head.terms != terms {
		return nil
	}
	p, _ := l.spare.Get().(*place)
	if p == nil {
		p = &place{turn: make(chan struct{}, 1)}
	}
	p.line, p.prev, p.terms = q, q.tail, terms
	q.insert(p)
	return p
}

// giveUp takes p out of its line. It reports false if p has just been told that it
// leads, or that it has what it waits for, or is about to be told.
func (l *lines) giveUp(p *place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.out || p == p.line.head {
		return false
	}
	l.remove(p)
	return true
}

// equip gives a head the ticket with which it asks.
func (l *lines) equip(p *place, t *Ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.ticket = t
}
