// The cohort: a hold that is passed on within its process, without Redis.

package lease

import (
	"context"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

const (
	// DefaultHandOvers is how often a hold is passed on within a process before
	// others get it, where Cohort says nothing else.
	DefaultHandOvers = 1000
	// DefaultCohortTime is for how long.
	DefaultCohortTime = 10 * time.Millisecond
	// MaxHandOvers is the most that Cohort takes: so many tokens are reserved, a
	// microsecond for each, and Redis cannot lose its data and come back in less.
	MaxHandOvers = 1000
)

// cohort is how far a hold may be passed on. It is guarded by the hold's mutex.
type cohort struct {
	terms engine.Terms
	spare int64         // how many tokens are reserved
	until time.Duration // by the Client's age
}

// terms returns on what terms this is asked for: the zero Terms if it is nothing to
// pass on. A fixed lease has its full length from Redis, and what replicas must
// have acknowledged is acknowledged for one holder.
func (s *Settings) terms() engine.Terms {
	if s.fixed || s.replicas > 0 || s.handOvers == 0 || s.cohortTime == 0 {
		return engine.Terms{}
	}
	return engine.Terms{Lease: s.length, MaxHold: s.maxHold}
}

// join makes the hold that the acquisition was granted one that may be passed on,
// if tokens were reserved for that.
func (h *hold) join(a *acquisition) {
	terms := a.settings.terms()
	if spare := a.grant.reserved; spare > 0 && terms != (engine.Terms{}) {
		h.cohort = &cohort{
			terms: terms,
			spare: min(spare, int64(a.settings.handOvers)),
			until: h.granted + min(a.settings.cohortTime, math.MaxInt64-h.granted),
		}
	}
}

// heir returns the lease of whoever comes next, with the next token, if the hold
// may be passed on; the mutex is held, and the last lease has just ended. That is
// as if the next had entered before the one before it left: for Redis, and for the
// renewal, nothing changes.
func (h *hold) heir() *Lease {
	c, now := h.cohort, h.engine.Age()
	if c == nil || c.spare == 0 || h.count > 0 || h.gone || now > c.until {
		return nil
	}
	// What is not settled yet is no one else's to live with.
	if h.late != nil || h.entering || h.changing || h.suspect || h.engine.AgeAt(h.deadline)-now < c.terms.Lease/2 {
		return nil
	}
	c.spare--
	h.token++
	h.granted = now
	l := &Lease{hold: h, length: c.terms.Lease, token: h.token}
	if c.terms.MaxHold > 0 {
		l.rarely().maxHold = time.Now().Add(c.terms.MaxHold)
	}
	h.leases, h.count = l, 1
	return l
}

// pass gives the heir to a goroutine that waits. It reports false if there is none:
// then the hold has ended; or was lost meanwhile, which is the error. afterFixed says
// that the last lease on the hold was a fixed one: then no renewal is planned.
func (h *hold) pass(heir *Lease, afterFixed bool) (passed bool, err error) {
	if afterFixed || h.cohort.terms.MaxHold > 0 {
		h.mu.Lock()
		h.reschedule()
	}
	if h.engine.Pass(h.resource.Key(), h.cohort.terms, heir) {
		return true, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if heir.ended != notYet {
		return false, h.error("release", heir.ended.err())
	}
	h.finish(heir, byRelease)
	h.gone = true
	return false, nil
}

// seats reports whether processes have seats for the resource. Others may wait for the
// same key, such as a Mutex for an RWMutex's.
func seats(r Resource) bool {
	q, ok := r.(Queueing)
	return ok && q.Grain() == engine.PerProcess
}

// abandoned returns the seat that this process does not need any more: see
// engine.Engine.Abandon.
func abandoned(e *engine.Engine, r Resource) (seat int64) {
	if !seats(r) {
		return 0
	}
	return e.Abandon(r.Key())
}

// giveUpSeat gives up the place in Redis's queue that this process has for the
// resource, if nobody of it waits any more.
func giveUpSeat(e *engine.Engine, r Resource, seat int64) {
	if seat != 0 {
		giveUp(e, r, NewOwner(e.Client(), seat), 0, 0)
	}
}

// follow waits behind others of this process, if some wait, for a lease to be passed
// on. It returns that lease; or the place in line of one who leads it now; or neither,
// if there is nobody to follow.
func (q *Request) follow(ctx context.Context) (*Lease, engine.Turn, error) {
	terms := q.Settings.terms()
	if r, ok := q.Resource.(Queueing); !ok || r.Grain() != engine.PerProcess || q.Try || terms == (engine.Terms{}) {
		return nil, engine.Turn{}, nil
	}
	turn, err := q.Engine.Follow(ctx, q.Resource.Kind(), q.Resource.Key(), terms)
	if err != nil {
		return nil, turn, hinted(err, q.Engine, q.Resource)
	}
	l, _ := turn.Passed.(*Lease)
	if l != nil && !l.lasts() {
		l.disown()
		l = nil
	}
	return l, turn, nil
}

// inherited returns the lease that was passed to the acquisition; nil if none was.
func (a *acquisition) inherited() *Lease {
	l, _ := a.place.Passed.(*Lease)
	return l
}

// lostInheritance reports whether the lease that was passed to the acquisition was
// over before anybody could use it, as when the process stood still just then. Nobody
// but the acquisition knows of that lease, so it is released, and the acquisition is
// ready to wait again.
func (a *acquisition) lostInheritance() bool {
	l := a.inherited()
	if l == nil || l.lasts() {
		return false
	}
	l.disown()
	a.vacate()
	if a.lateUntil != 0 || a.marked {
		a.undo()
	}
	a.lateUntil, a.lateSeat, a.marked = 0, 0, false
	a.owner = NewOwner(a.engine.NewOwner())
	return true
}

// disown releases, in the background, a lease that nobody has.
func (l *Lease) disown() {
	l.hold.engine.Background(func() { _, _ = l.release() }) // what it says is nobody's to hear
}

// lasts reports whether the lease has not ended, nor is over.
func (l *Lease) lasts() bool {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	return l.ended == notYet && time.Until(l.end()) > 0
}
