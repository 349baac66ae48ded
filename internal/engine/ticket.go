package engine

import "slices"

// Ticket is a waiter's place in a queue that Redis keeps, such as a fair lock's.
//
// Every waiter asks once when it arrives, which gives it its place. From then on
// only the first of a process asks, and its requests keep alive the places of
// those behind it, so that a process sends one heartbeat for all its waiters. A
// place that is not kept alive, because the process died, is passed over.
//
// The head never takes a place for another, who may just be leaving: one behind
// it whose place is gone is told to ask by itself.
type Ticket struct {
	ID string
	// Seq is the waiter's number in the queue. Try sets it once, from the first
	// answer; a place that was lost is taken again with it.
	Seq int64
	// Behind are the tickets whose places Try is to keep alive with its own.
	Behind []*Ticket
	// Nudge is set by Try to those of Behind who must ask by themselves: the
	// grant went to them, or their place is gone.
	Nudge []*Ticket
}

// gather collects for the head's ticket those behind it.
func (l *lines) gather(p *place) {
	if p.ticket == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := p.ticket
	t.Nudge, t.Behind = nil, t.Behind[:0]
	for at := p.next; at != nil; at = at.next {
		t.Behind = append(t.Behind, at.ticket)
	}
}

// nudge tells those behind the head to try who must.
func (l *lines) nudge(p *place) {
	if p.ticket == nil || len(p.ticket.Nudge) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := p.next; at != nil; at = at.next {
		if slices.Contains(p.ticket.Nudge, at.ticket) {
			select {
			case at.nudged <- struct{}{}:
			default:
			}
		}
	}
}
