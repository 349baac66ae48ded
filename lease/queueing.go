package lease

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// Queueing is a Resource of which those who wait have a place in a queue that
// Redis keeps. Its Release gives up the place too, and who stops waiting always
// gives it up. It is for the packages of the synchronizers.
type Queueing interface {
	Resource
	// Grain says who has a place.
	Grain() engine.Grain
	// Keeps says how long a place is kept without being heard of, and how long the
	// hold lasts that is handed to the waiter in it.
	Keeps() time.Duration
	// Enter is Acquire for one who waits with that ticket. Granted has behind the
	// token how many more are reserved and the number of the next seat's place, 0 for
	// none; Refused has the number of the place; and then come, in both, the owners
	// that are to be nudged: see engine.Ticket.
	Enter(owner Owner, length time.Duration, ticket *engine.Ticket) *conn.Call
	// Free is Release for a hold that nobody waits for as far as is known: Granted or
	// Refused, without the time; or Awaited if somebody does: then nothing was done.
	Free(owner Owner, publish string) *conn.Call
	// ReleaseAnd is Release; and leaves gives up its place; and joins takes one, if this
	// releases the hold, whose number follows the time in the reply. Either may be zero.
	ReleaseAnd(owner Owner, publish string, leaves, joins Owner) *conn.Call
}

// queue gives the acquisition a ticket if its resource has places.
func (a *acquisition) queue() *engine.Ticket {
	q, ok := a.resource.(Queueing)
	if !ok {
		return nil
	}
	a.ticket, a.place = &a.place, engine.Ticket{Grain: q.Grain(), Owner: a.owner.id, Doubt: a.lateUntil != 0}
	if !a.settings.fixed && a.settings.replicas == 0 {
		a.place.Lasts = lasts(q.Keeps())
	}
	if a.place.Grain == engine.PerWaiter {
		a.place.ID = a.owner.String()
		return a.ticket
	}
	a.place.Terms = a.settings.terms()
	if a.place.Terms != (engine.Terms{}) {
		a.place.Reserve = a.settings.handOvers
	}
	return a.ticket
}

// stands reports whether a refused try may have taken a place of this
// acquisition's own, or left a mark.
func (a *acquisition) stands() bool {
	if a.ticket == nil {
		return a.resource.Waiting().Marks
	}
	return a.ticket.Grain == engine.PerWaiter
}

// ask is the call of one try.
func (a *acquisition) ask() *conn.Call {
	t := a.ticket
	if t == nil {
		return a.resource.Acquire(a.owner, a.settings.length)
	}
	if t.Leads && t.Grain == engine.PerProcess {
		a.become(t.Owner)
	}
	return a.resource.(Queueing).Enter(a.owner, a.settings.length, t)
}

// become has the acquisition go on as the owner with that number. What the owner
// before it may have, or get, is given up. The doubt stays: it may be about the place of
// the new owner: the engine knows more of it than the acquisition does.
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

// vacate sees to the seat that the acquisition is to give up when it ends without a
// hold of its own.
func (a *acquisition) vacate() {
	if orphan := a.place.Orphan; orphan != 0 {
		a.become(orphan)
		a.marked = true
	}
}

// placed takes in what the answer says of the queue.
func (a *acquisition) placed(call *conn.Call) {
	t := a.ticket
	if t == nil || t.Grain == engine.PerProcess && !t.Leads {
		return
	}
	t.Kept = call.Sent
	if _, unheard := call.Outstanding(); unheard && call.Status() == Granted {
		t.Kept = time.Time{} // the next place may be from an earlier sending
	}
	nudge := 4
	if call.Status() == Granted {
		nudge = 6
		if t.Grain == engine.PerProcess { // others in line go by the number of a waiter's own
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
	if call.Status() != Granted && slices.Contains(t.Nudge, a.owner.String()) {
		// The place was lost, perhaps to a hand-over that has run out since, of which
		// the message may still come.
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

// lasts returns how long a place lasts here that is kept for that long there, which
// is to the millisecond.
func lasts(kept time.Duration) time.Duration {
	kept -= time.Millisecond
	return kept - margin(kept)
}

// handed takes in that the thing was handed to the acquisition by a message.
func (a *acquisition) handed() {
	t := a.ticket
	if t.Grain == engine.PerProcess {
		a.become(t.Owner)
	}
	// The earlier of the two: a server that has become the master may know of the
	// place from before it was kept last.
	now := time.Now()
	until := earlier(t.Kept.Add(t.Lasts), now.Add(lasts(t.Left)))
	a.grant = grant{sent: now, until: until, token: t.Token, partial: true}
}

// wholeAfter is when the holder of what was handed to it by a message asks for its
// whole lease, if it holds it for so long.
const wholeAfter = 20 * time.Millisecond
