package lease

import (
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
	// Enter is Acquire for one who waits with that ticket. Granted has behind the
	// token, and Refused behind the number of the place, the owners that are to be
	// nudged: see engine.Ticket.
	Enter(owner Owner, length time.Duration, ticket *engine.Ticket) *conn.Call
}

// queue gives the acquisition a ticket if its resource has places.
func (a *acquisition) queue() *engine.Ticket {
	if q, ok := a.resource.(Queueing); ok {
		a.ticket = &a.place
		a.place.Grain = q.Grain()
		if a.place.Grain == engine.PerWaiter {
			a.place.ID = a.owner.String()
		}
	}
	return a.ticket
}

// stands reports whether a refused try may have taken a place, or left a mark.
func (a *acquisition) stands() bool {
	if a.ticket == nil {
		return a.resource.Waiting().Marks
	}
	return a.ticket.Grain == engine.PerWaiter || a.ticket.Leads
}

// ask is the call of one try.
func (a *acquisition) ask() *conn.Call {
	if a.ticket == nil {
		return a.resource.Acquire(a.owner, a.settings.length)
	}
	return a.resource.(Queueing).Enter(a.owner, a.settings.length, a.ticket)
}

// placed takes in what the answer says of the queue.
func (a *acquisition) placed(call *conn.Call) {
	t := a.ticket
	if t == nil || !a.stands() {
		return
	}
	if t.Seq == 0 && call.Status() == Refused {
		t.Seq = call.Int(3)
	}
	t.Nudge = nil
	for i := 4; i < len(call.Reply); i++ {
		t.Nudge = append(t.Nudge, call.Text(i))
	}
}
