// The ticket: what a waiter and its requests tell each other about its place in Redis's queue.

package line

import "time"

// Grain says who has a place in a queue that Redis keeps.
type Grain int

const (
	// PerWaiter: each waiter has a place. It asks once when it arrives, which gives it its place.
	// From then on only the head of its process's line asks, and the head's requests keep the
	// places of those behind it, so that a process sends one heartbeat for all its waiters.
	PerWaiter Grain = iota
	// PerProcess: each process has one place, its seat, whichever of its waiters is the head. The
	// waiters behind the head ask for nothing.
	PerProcess
)

// Ticket is a waiter's place in a queue that Redis keeps, such as a lock's. A place that is not
// kept, because the process has died, is passed over.
//
// The head never takes a place for another waiter, which may just be leaving. A waiter behind the
// head whose place is gone is told to ask by itself.
type Ticket struct {
	Grain Grain
	ID    string // the waiter's, if each waiter has a place
	// Leads says that the waiter is the head of its line.
	Leads bool
	// Owner is the number of the owner that the waiter asks as: its own, or the seat's if it leads
	// with its process's seat.
	Owner int64
	// Seq is the waiter's number in the queue. Try sets it once, from the first answer. A waiter
	// that has lost its place takes it again with this number.
	Seq int64
	// Follows says that other waiters of this process stand before this one. So it must not take
	// what it finds free: the others may only have lost their places for the moment.
	Follows bool
	// Behind is the IDs of the waiters whose places Try must keep together with its own.
	Behind []string
	// Nudge is set by Try to the IDs of the waiters that must ask by themselves: the grant went to
	// them, or is theirs to take, or their place is gone. If the head's own place was gone, its ID
	// is among them, and all waiters behind it are told to ask.
	Nudge []string

	// Kept is set by Try to when the last request was sent that has kept the place.
	Kept time.Time
	// Lasts is for how long after Kept, at the least, the place is kept, and for how long the thing
	// is held if it is handed to the waiter. 0 means that being handed it is not enough: the waiter
	// must ask.
	Lasts time.Duration
	// Token, after Wait, is the token of the thing if it was handed to the waiter by a message,
	// without a request, in the place that was last kept at Kept. It is 0 if Try was granted. Left
	// is how much longer that place was kept, as the message said.
	Token int64
	Left  time.Duration
	// Doubt is set by Try if a request was not answered that may still change something for Owner
	// or Next. It is also set if the place had been lost: what was handed to Owner in it may have
	// gone to another since, and the message may be still to come.
	Doubt bool

	// The fields from here on are for the grain PerProcess.
	//
	// Next is the number of the owner that is to have the seat once Owner is granted the thing,
	// because others wait; 0 if nobody does. A Try that is granted sets Next to 0 if that owner got
	// no place, and Seq to the place's number if it did.
	Next int64
	// Orphan, after Wait, is the number of the owner whose seat the waiter must give up; 0: none.
	Orphan int64
	// Terms are the waiter's terms.
	Terms Terms
	// Reserve is how many tokens a grant is to reserve for the waiters of this process that the
	// thing is passed on to. Publish is the command that tells of releases. From it Redis knows how
	// to find out whether others than Clients of Holdfast wait; if so, it reserves none.
	Reserve int
	Publish string
	// Passed is what a holder of this process has passed on to the waiter; nil if Redis granted it.
	Passed any
}

// beat is how often the places behind the head are kept. It is shorter than any poll, so that each
// poll keeps them.
const beat = 3 * PollBound / 4

// beats is how many places one request keeps at the most, so that it does not keep Redis from
// others for long.
const beats = 1000

// gather sets whose places the head's next request keeps: most of the time none. It reports whether
// more are due.
func (l *Lines) gather(me *waiter) (more bool) {
	t, q := me.ticket, me.line
	if t == nil {
		return false
	}
	t.Leads, t.Follows, t.Nudge = true, false, nil
	if t.Grain == PerProcess {
		return false
	}
	if now := time.Now(); len(q.due) == 0 && now.Sub(q.beaten) >= beat {
		q.due, q.beaten = l.behind(me), now
	}
	n := min(len(q.due), beats)
	t.Behind, q.due = q.due[:n], q.due[n:]
	return len(q.due) > 0
}

// behind returns the IDs of the waiters behind this one.
func (l *Lines) behind(me *waiter) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ids []string
	for at := me.next; at != nil; at = at.next {
		ids = append(ids, at.ticket.ID)
	}
	return ids
}

// follows reports whether the head of the line is before this waiter in Redis's queue too. Of two
// waiters that came at once, the one that Redis heard of first may be the second to join the line.
func (l *Lines) follows(me *waiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	head := me.line.head.ticket
	return head == me.ticket || head.Seq <= me.ticket.Seq
}

// nudge has the waiter try once, and then go on waiting.
func (me *waiter) nudge() {
	select {
	case me.nudged <- struct{}{}:
	default:
	}
}

// nudge nudges those behind the head that its ticket says must ask. It reports whether there were
// any.
func (l *Lines) nudge(me *waiter) (nudged bool) {
	if me.ticket == nil || len(me.ticket.Nudge) == 0 || me.ticket.Grain == PerProcess {
		return false
	}
	ids := make(map[string]bool, len(me.ticket.Nudge))
	for _, id := range me.ticket.Nudge {
		ids[id] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	all := ids[me.ticket.ID]
	for at := me.next; at != nil; at = at.next {
		if all || ids[at.ticket.ID] {
			nudged = true
			at.nudge()
		}
	}
	return nudged
}
