// Queues in Redis: what a synchronizer with a queue brings, and an acquisition's place in that
// queue.

package lease

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/line"
)

// Queueing is a Resource whose waiters have places in a queue that Redis keeps. Its Release gives
// up the place too, and a waiter that stops waiting always gives its place up. It is for the
// packages of the synchronizers.
type Queueing interface {
	Resource
	// Grain says who has a place in the queue.
	Grain() line.Grain
	// Keeps returns how long a place is kept after the last request that named it, and how long a
	// hold that is handed to the waiter in that place lasts.
	Keeps() time.Duration
	// Enter is Acquire for a waiter with that ticket. A Done reply has, behind the token, how
	// many more tokens are reserved, and the number of the next seat's place (0: there is none). A
	// Refused reply has the number of the place. At the end both have the owners that must be
	// nudged: see line.Ticket.
	Enter(owner Owner, length time.Duration, ticket *line.Ticket) *conn.Call
	// Free is Release for a hold for which nobody is known to wait. The reply is Done or
	// Refused, without the time. It is Awaited if somebody does wait: then nothing was done.
	Free(owner Owner, publish string) *conn.Call
	// ReleaseAnd is Release with two more steps: leaves gives up its place, and joins takes a place
	// if this call releases the hold. The number of that place follows the time in the reply.
	// Either owner may be zero.
	ReleaseAnd(owner Owner, publish string, leaves, joins Owner) *conn.Call
}

// queue gives the acquisition a ticket, and returns it, if its resource has a queue; else it
// returns nil.
func (a *acquisition) queue() *line.Ticket {
	q, ok := a.resource.(Queueing)
	if !ok {
		return nil
	}
	a.ticket, a.issued = &a.issued, line.Ticket{Grain: q.Grain(), Owner: a.owner.id, Doubt: a.lateUntil != 0}
	if !a.settings.fixed && a.settings.replicas == 0 {
		a.issued.Lasts = lasts(q.Keeps())
	}
	if a.issued.Grain == line.PerWaiter {
		a.issued.ID = a.owner.String()
		return a.ticket
	}
	a.issued.Terms = a.settings.terms()
	if a.issued.Terms != (line.Terms{}) {
		a.issued.Reserve = a.settings.localHandoffs
	}
	return a.ticket
}

// stands reports whether a refused try may have taken a place of this
// acquisition's own, or left a mark.
func (a *acquisition) stands() bool {
	if a.ticket == nil {
		return a.resource.Waiting().Marks
	}
	return a.ticket.Grain == line.PerWaiter
}

// ask returns the call of one try.
func (a *acquisition) ask() *conn.Call {
	t := a.ticket
	if t == nil {
		return a.resource.Acquire(a.owner, a.settings.length)
	}
	if t.Leads && t.Grain == line.PerProcess {
		a.become(t.Owner)
	}
	return a.resource.(Queueing).Enter(a.owner, a.settings.length, t)
}

// become has the acquisition go on as the owner with that number. It gives up what the owner before
// it may have or may still get. The doubt stays, because it may be about the new owner's place: the
// engine knows more about that place than the acquisition does.
func (a *acquisition) become(number int64) {
	if number == a.owner.id {
		return
	}
	if a.lateUntil != 0 {
		giveUp(a.engine, a.resource, a.owner, a.lateUntil, a.settings.length)
		a.lateUntil = 0
	}
	a.owner.id = number
}

// vacate makes the acquisition the owner of the seat that it must give up, if there is one, so that
// undo releases that seat. It is called when the acquisition ends without a hold of its own.
func (a *acquisition) vacate() {
	if orphan := a.issued.Orphan; orphan != 0 {
		a.become(orphan)
		a.marked = true
	}
}

// placed takes in what the answer says about the queue.
func (a *acquisition) placed(call *conn.Call) {
	t := a.ticket
	if t == nil || t.Grain == line.PerProcess && !t.Leads {
		return
	}
	t.Kept = call.Sent
	if _, unheard := call.Outstanding(); unheard && call.Status() == conn.Done {
		t.Kept = time.Time{} // an earlier sending may have taken the next place
	}
	nudge := 4
	if call.Status() == conn.Done {
		nudge = 6
		if t.Grain == line.PerProcess { // a waiter's own Seq orders its line
			t.Seq = call.Int(5)
		}
		if call.Int(5) == 0 {
			t.Next = 0
		}
	} else if t.Seq == 0 {
		t.Seq = call.Int(3)
	}
	t.Nudge = nil
	for i := nudge; i < call.Reply.Len(); i++ {
		t.Nudge = append(t.Nudge, call.Text(i))
	}
	if call.Status() != conn.Done && slices.Contains(t.Nudge, a.owner.String()) {
		// The place was lost, perhaps after a hand-over that has run out since, whose message may
		// still come.
		t.Doubt = true
	}
}

// reserved returns how many tokens the call has reserved.
func (a *acquisition) reserved(call *conn.Call) int64 {
	if a.ticket == nil || !a.ticket.Leads {
		return 0
	}
	return call.Int(4)
}

// lasts returns how long a place that Redis keeps for kept can be relied on here: a millisecond
// less, because Redis counts whole milliseconds, and the margin less.
func lasts(kept time.Duration) time.Duration {
	kept -= time.Millisecond
	return kept - margin(kept)
}

// handed takes in that a message has handed the thing to the acquisition.
func (a *acquisition) handed() {
	t := a.ticket
	if t.Grain == line.PerProcess {
		a.become(t.Owner)
	}
	// The earlier of the two ends: a server that has just become the master may know of the place
	// only from before it was last kept.
	now := time.Now()
	until := earlier(t.Kept.Add(t.Lasts), now.Add(lasts(t.Left)))
	a.grant = grant{sent: now, until: until, token: t.Token, partial: true}
}

// wholeAfter is how long after a hand-over by a message the holder asks for its whole lease, if it
// still holds the thing then.
const wholeAfter = 20 * time.Millisecond
