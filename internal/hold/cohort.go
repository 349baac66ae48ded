// The cohort: holders of one process that pass one hold on among themselves, without Redis.

package hold

import (
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/line"
)

// cohort says how far a hold may still be passed on. It is guarded by the hold's mutex.
type cohort struct {
	terms line.Terms
	spare int64         // how many reserved tokens are left
	until time.Duration // when that ends, by the Client's age
}

// terms returns the terms on which a lease with these settings can be passed on, or the zero Terms
// if it cannot be. A fixed lease cannot, because it has its full length from Redis. A lease with
// Replicas cannot, because the replicas have acknowledged it for one holder only. With Supersede each holder must
// be known to Redis.
func (s *Settings) terms() line.Terms {
	if s.Fixed || s.Supersede || s.Replicas > 0 || s.LocalHandoffs == 0 || s.CohortTime == 0 {
		return line.Terms{}
	}
	return line.Terms{Lease: s.Length, Grace: s.Grace, MaxHold: s.MaxHold, Notified: s.Notified}
}

// join lets the hold that the acquisition was granted be passed on, if tokens were reserved for
// that.
func (h *hold) join(a *acquisition) {
	terms := a.settings.terms()
	if spare := a.grant.reserved; spare > 0 && terms != (line.Terms{}) {
		spare = min(spare, int64(a.settings.LocalHandoffs))
		h.cohort = &cohort{
			terms: terms,
			spare: a.engine.Lines.Passes(a.resource.Key(), spare),
			until: h.granted + min(a.settings.CohortTime, math.MaxInt64-h.granted),
		}
	}
}

// alike reports whether l is renewed as an heir must be: a nested lease may be fixed, or have another grace. Its length does
// not matter, because the renewal that goes by it comes before the hold is over.
func (c *cohort) alike(l *Lease) bool { return !l.fixed && l.grace() == c.terms.Grace }

// makeHeir makes the lease of the next holder, with the next token. It returns nil if the hold may not
// be passed on; otherwise it also returns for how long the last holder has held. The caller holds the
// mutex, and has just ended last. It is as if the next holder had entered the hold before the
// last one left it: nothing changes for Redis, or for the renewal, which goes by the last lease.
func (h *hold) makeHeir(last *Lease) (heir *Lease, held time.Duration) {
	c, now := h.cohort, h.engine.Age()
	if c == nil || c.spare == 0 || now > c.until || h.count > 0 || h.gone || h.unsettled() || !c.alike(last) {
		return nil, 0
	}
	// A hold that lasts for longer than Redis would give the heir, as after a longer nested lease, is not passed on either:
	// if the heir dies, the hold would stay for as long. Redis gives it a lease, or the rest of a place.
	most := max(c.terms.Lease, h.resource.(Queueing).Keeps())
	if left := h.engine.AgeAt(h.deadline) - now; left < (c.terms.Lease+c.terms.Grace)/2 || left > most {
		return nil, 0
	}
	c.spare--
	h.token++
	held, h.granted = now-h.granted, now
	l := &Lease{hold: h, length: c.terms.Lease, token: h.token}
	if c.terms.Grace > 0 {
		l.rarely().grace = c.terms.Grace
	}
	if c.terms.MaxHold > 0 {
		l.rarely().maxHold = time.Now().Add(c.terms.MaxHold)
	}
	h.leases, h.count = l, 1
	return l, held
}

// endCohort lets the hold be passed on no more, because a request other than its renewal may make Redis keep it for longer
// than this process knows. The caller holds the mutex.
func (h *hold) endCohort() {
	if h.cohort != nil {
		h.cohort.spare = 0
	}
}

// unsettled reports whether the hold is to stay, a change of its count is under way, or something about it is unknown. The
// caller holds the mutex.
func (h *hold) unsettled() bool {
	return h.stillStays() > 0 || h.late != nil || h.entering || h.changing || h.suspect
}

// pass gives the heir to a waiter. If there is no waiter, it reports false, and the hold has ended.
// If the hold has ended in the meantime, as by Close, it reports false and returns the error that says so.
// held is for how long the last holder has held.
func (h *hold) pass(heir *Lease, held time.Duration) (passed bool, err error) {
	if h.cohort.terms.MaxHold > 0 {
		h.mu.Lock()
		h.reschedule()
	}
	if h.engine.Lines.Pass(h.resource.Key(), h.cohort.terms, heir) {
		return true, nil
	}
	h.mu.Lock()
	if heir.ended != notYet {
		h.mu.Unlock()
		_, err := heir.release(true) // nobody has it, so Redis must not keep it
		return false, err
	}
	h.granted -= held // the last holder's again
	h.finish(heir, byRelease)
	h.gone = true
	h.mu.Unlock()
	return false, nil
}

// seats reports whether processes have seats for the resource. If they have none, a seat at the
// same key is another kind's, such as a Mutex's at the key of an RWMutex.
func seats(r Resource) bool {
	q, ok := r.(Queueing)
	return ok && q.Grain() == line.PerProcess
}

// abandoned returns the seat that this process no longer needs, as the number of its owner, or 0:
// see line.Lines.Abandon.
func abandoned(e *engine.Engine, r Resource) (seat int64) {
	if !seats(r) {
		return 0
	}
	return e.Lines.Abandon(r.Key())
}

// giveUpSeat gives up, in the background, a seat that this process does not need, until a release is answered
// after notAfter. If seat is 0, there is none to give up.
func giveUpSeat(e *engine.Engine, r Resource, seat, notAfter int64) {
	if seat != 0 {
		giveUp(e, r, NewOwner(e.Client(), seat), 0, notAfter, 0)
	}
}

// disown releases, in the background, a lease that nobody has.
func (l *Lease) disown() {
	l.hold.engine.Background(func() { _, _ = l.release(true) }) // what it says is nobody's to hear
}

// lasts reports whether the lease goes on: it has neither ended nor reached its end by the clock.
func (l *Lease) lasts() bool {
	l.hold.mu.Lock()
	defer l.hold.mu.Unlock()
	return l.ended == notYet && time.Until(l.end()) > 0
}
