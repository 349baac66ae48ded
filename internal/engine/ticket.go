// A place in a queue that Redis keeps.

package engine

import "time"

// Grain is who has a place in a queue that Redis keeps.
type Grain int

const (
	// PerWaiter: everybody who waits. Each asks once when it arrives, which gives it
	// its place. From then on only the first of a process asks, and its requests
	// keep alive the places of those behind it, so that a process sends one heartbeat
	// for all its waiters.
	PerWaiter Grain = iota
	// PerProcess: each process has one, its seat, whoever of its waiters leads. The
	// others ask for nothing.
	PerProcess
)

// Ticket is a waiter's place in a queue that Redis keeps, such as a lock's. A
// place that is not kept alive, because the process died, is passed over.
//
// The head of a process never takes a place for another, who may just be leaving:
// one behind it whose place is gone is told to ask by itself.
type Ticket struct {
	Grain Grain
	ID    string // where each waiter has a place
	// Leads says that the waiter is the first of its process.
	Leads bool
	// Owner is the number of the owner that the waiter asks as: its own, or, where it
	// leads with its process's seat, that of the seat.
	Owner int64
	// Seq is the waiter's number in the queue. Try sets it once, from the first
	// answer; a place that was lost is taken again with it.
	Seq int64
	// Follows says that others of this process wait before this one, so that it
	// is not to get what it finds free: their places may be lost for the moment.
	Follows bool
	// Behind are the IDs of those whose places Try is to keep alive with its own.
	Behind []string
	// Nudge is set by Try to the IDs of those who must ask by themselves: the
	// grant went to them, or is theirs to take, or their place is gone. If the head's own was gone, its
	// ID is among them, and all are told.
	Nudge []string

	// Kept is set by Try to when the last request was sent that has kept the place.
	Kept time.Time
	// Lasts is for how long after that it is kept, at the least, and the thing held that
	// is handed to the waiter. 0: being handed it is not enough, it must ask.
	Lasts time.Duration
	// Token, after Wait, is the token of what was handed to the waiter, without its
	// having asked, in the place that it had Kept; 0 where Try was granted. Left is how
	// long that was kept still, as it was told.
	Token int64
	Left  time.Duration
	// Doubt is set by Try when a request was not answered that may still change
	// something for Owner or Next, and when the place had been lost: what was handed to
	// Owner in it may have gone to another, and the message be still to come.
	Doubt bool

	// What follows is of the grain PerProcess. Next is the number of the owner that is to have the seat once Owner is granted
	// the thing: others wait. 0: nobody does. A Try that is granted sets it to 0 if
	// that one got no place, and Seq to the place's number if it did.
	Next int64
	// Orphan, after Wait, is the owner of a seat that is to be given up; 0: of none.
	Orphan int64
	// Terms are the waiter's.
	Terms Terms
	// Reserve is how many tokens a grant is to reserve for those of this process that
	// the thing is passed on to; and Publish the command by which Redis knows whether
	// any but Clients of Holdfast wait, for whom there are to be none.
	Reserve int
	Publish string
	// Passed is what a holder of this process has passed on to the waiter; nil where
	// it was Redis that granted.
	Passed any
}

// beat is how often the places behind the head are kept alive. It is shorter
// than any poll, so that each poll does.
const beat = 3 * PollBound / 4

// beats is how many places one request keeps alive at the most, so that Redis
// is not kept from others for long.
const beats = 1000

// gather sets whose places the head's next request keeps alive: nobody's, most
// of the time. It reports whether more are due.
func (l *lines) gather(p *place) (more bool) {
	t, q := p.ticket, p.line
	if t == nil {
		return false
	}
	t.Leads, t.Follows, t.Nudge = true, false, nil
	if t.Grain == PerProcess {
		return false
	}
	if now := time.Now(); len(q.due) == 0 && now.Sub(q.beaten) >= beat {
		q.due, q.beaten = l.behind(p), now
	}
	n := min(len(q.due), beats)
	t.Behind, q.due = q.due[:n], q.due[n:]
	return len(q.due) > 0
}

// behind returns the IDs of those behind p.
func (l *lines) behind(p *place) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []string
	for at := p.next; at != nil; at = at.next {
		ids = append(ids, at.ticket.ID)
	}
	return ids
}

// follows reports whether the head of p's line is before it in Redis's queue too.
// Of two that came at once, the one that Redis heard of first may be the second
// to join the line.
func (l *lines) follows(p *place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	head := p.line.head.ticket
	return head == p.ticket || head.Seq <= p.ticket.Seq
}

// nudge has the place's waiter try, and then go on waiting.
func (p *place) nudge() {
	select {
	case p.nudged <- struct{}{}:
	default:
	}
}

// nudge tells those behind the head to try who must. It reports whether there were
// any.
func (l *lines) nudge(p *place) (nudged bool) {
	if p.ticket == nil || len(p.ticket.Nudge) == 0 || p.ticket.Grain == PerProcess {
		return false
	}
	ids := make(map[string]bool, len(p.ticket.Nudge))
	for _, id := range p.ticket.Nudge {
		ids[id] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := ids[p.ticket.ID]
	for at := p.next; at != nil; at = at.next {
		if all || ids[at.ticket.ID] {
			nudged = true
			at.nudge()
		}
	}
	return nudged
}
