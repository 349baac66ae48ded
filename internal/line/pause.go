// How long a head need not ask, and why it asks then.

package line

import "time"

// pause is how long a head need not ask. The zero pause is over at once: the head knows nothing.
type pause struct {
	length time.Duration
	then   occasion
}

// occasion is why a head asks when its pause is over, if no message has come before.
type occasion int

const (
	mayBeFree occasion = iota // what is known to hold the thing may have ended by then
	pollDue                   // the thing is held for longer, but a message may have been lost
	// seatDue: the process's seat must be taken by then, unless a release of this process has taken
	// it (see seatVacated).
	seatDue
)

// pauseUntil returns the pause that is over at t.
func pauseUntil(t time.Time) pause { return pause{length: max(0, time.Until(t))} }

func (l *Lines) pauseFor(h Held) pause {
	nap := h.nap()
	if h.outlasts(nap) {
		return pause{l.onGrid(nap), pollDue}
	}
	return pause{length: nap}
}

// pollGrid is between the instants on which the polls of one Client fall, so that the polls for many
// names go out together.
const pollGrid = 50 * time.Millisecond

// onGrid returns a shorter nap, which ends on the grid of this Client's polls.
func (l *Lines) onGrid(nap time.Duration) time.Duration {
	return nap - (l.awaited.age()+nap)%pollGrid
}

// held returns the pause of a new head, by what is known of the present grant. Held.nap limits it.
//
//	the last grant came to this      until that grant is over: nothing is free before the line
//	process                          hears of it
//	it has just asked for itself     as long as that answer says
//	otherwise                        none: the head before it may have left with a message that it
//	                                 never acted on
func (q *line) held(first Held) pause {
	switch left := time.Until(q.heldUntil); {
	case !q.heldUntil.IsZero() && left > 0:
		return pause{length: HeldFor(left).nap()}
	case q.heldUntil.IsZero() && first != (Held{}):
		return pause{length: first.nap()}
	default:
		return pause{}
	}
}
