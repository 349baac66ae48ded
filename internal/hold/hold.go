// The hold: what Redis knows, and how it is kept alive.

package hold

import (
	"cmp"
	"math"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/renewal"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// hold is what Redis knows: one owner's possession of one thing, with one time to live, under one
// or more leases. It is the task that the scheduler renews.
type hold struct {
	entry    renewal.Entry
	member   engine.Registered
	engine   *engine.Engine
	resource Resource
	number   int64 // the owner's, which is always one of this Client's
	late     *late // what requests whose replies were never heard could still do; nil: nothing

	mu sync.Mutex // guards what follows, and the leases' own state
	given
	kept
	counted
	leases *Lease  // those that have not ended, the last granted first
	seldom *seldom // what most holds never have, or nil

	first Lease // the lease that began it, which stands here to save an allocation
}

// given is what the latest holder was given.
type given struct {
	token   int64         // the last token given
	granted time.Duration // when its latest holder was granted it, by the Client's age
	cohort  *cohort       // how far it may be passed on; nil: not at all
}

// kept is how long a hold lasts, and the renewal that prolongs it.
type kept struct {
	deadline time.Time       // with its wall time, in case the machine sleeps
	renewAt  time.Duration   // when it is renewed next, by the Client's age
	group    telemetry.Group // of its name, for metrics; never changes
	renewing bool            // the scheduler has asked for a renewal that is not answered yet
	overtook bool            // another call has prolonged it since
	ofQuorum bool            // it is a member of one; never changes
	suspect  bool            // the wall clock says that it may be over: Redis is asked
}

// counted is how many leases are on a hold, and whether one more can be added.
type counted struct {
	count    int32
	gone     bool // it has ended for good: no lease can be added
	entering bool // a nested acquisition is under way
	changing bool // a change of the count is under way; there is one at a time
}

// late records what requests whose replies were never heard can still do. Until the not-after of
// the last of them, they can make the hold anew, and with it take a place in the queue for the
// owner with the number seat (0: for nobody).
type late struct {
	until int64
	seat  int64
}

// lateUntil returns the not-after of the last request that could still make the hold anew, or 0 if
// there is none.
func (h *hold) lateUntil() int64 {
	if h.late == nil {
		return 0
	}
	return h.late.until
}

func (h *hold) owner() Owner { return NewOwner(h.engine.Client(), h.number) }

func (h *hold) kind() telemetry.Kind {
	return telemetry.Kind{Name: kindOf(h.resource, h.ofQuorum), Group: h.group}
}

// permits returns how many permits are held; 0 if something else is held.
func (h *hold) permits() int64 {
	if r, of := h.resource.(Permits); of {
		return r.Permits()
	}
	return 0
}

// active counts the hold in this process's metrics: 1 when it begins, -1 when it ends.
func (h *hold) active(delta int64) {
	h.engine.Telemetry.Active(h.kind(), delta)
	h.engine.Telemetry.Permits(h.kind(), delta*h.permits())
}

// Group returns the group of the lease's name, for other metrics that are recorded while it lasts.
func (l *Lease) Group() telemetry.Group { return l.hold.group }

// Entry implements renewal.Task.
func (h *hold) Entry() *renewal.Entry { return &h.entry }

// Key implements renewal.Task.
func (h *hold) Key() string { return h.resource.Key() }

// Holder implements engine.Held.
func (h *hold) Holder() string { return h.owner().String() }

// Registered implements engine.Held.
func (h *hold) Registered() *engine.Registered { return &h.member }

// Urgency implements renewal.Task. A try takes a sixth of the lease, so that several fit between the
// first one and the deadline. If the wall clock says that the lease is over, Redis has a sixth of
// the lease for all tries together.
func (h *hold) Urgency() (deadline time.Time, try time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	try = h.try()
	if now := time.Now(); h.suspect && h.overByWallClock(now) {
		try = min(try, max(h.seldom.vouch-h.engine.AgeAt(now), shortestTry))
	}
	return h.renewable(), try
}

// needs is what the leases on a hold need: each field is the most that any of them needs.
type needs struct {
	renewal  time.Duration // the time to live that a renewal gives it; 0: no lease is renewed
	lease    time.Duration // how long a lease lasts
	grace    time.Duration // how much sooner than the hold a lease ends
	early    time.Duration // how much sooner a lease ends that is renewed
	after    time.Duration // for how long Redis is to keep it for a lease that has ended; without a grace: without end
	replicas int           // how many must acknowledge a call that prolongs it
}

// needs returns what the leases need. The caller holds the mutex.
func (h *hold) needs() (n needs) {
	for l := h.leases; l != nil; l = l.next {
		grace := l.grace()
		n.lease, n.grace = max(n.lease, l.length), max(n.grace, grace)
		n.after = max(n.after, cmp.Or(grace, math.MaxInt64))
		if !l.fixed {
			n.renewal, n.early = max(n.renewal, l.length), max(n.early, grace)
		}
		if l.rare != nil {
			n.replicas = max(n.replicas, l.rare.replicas)
		}
	}
	return n
}

// try returns how long one try of a renewal takes at most. The caller holds the mutex.
func (h *hold) try() time.Duration {
	n := h.needs()
	return (max(MinLease, n.lease) - n.early) / 6
}

// renewable returns until when a call may prolong the hold: after that a lease of it has ended. The
// caller holds the mutex.
func (h *hold) renewable() time.Time { return h.deadline.Add(-h.needs().early) }

// shortestTry is how long a try may take even if no time is left: the connection may still have to be
// made, to a server far away.
const shortestTry = 50 * time.Millisecond

// overByWallClock reports whether a lease on the hold is over by the wall clock, which goes on while
// the machine sleeps.
func (h *hold) overByWallClock(now time.Time) bool {
	return !now.Round(0).Before(h.deadline.Round(0).Add(-h.needs().grace))
}

// next returns when something about the hold is due: its deadline, the end of one of its leases, or
// a renewal.
func (h *hold) next() time.Time {
	due := h.deadline
	renewed := false
	for l := h.leases; l != nil; l = l.next {
		due = earlier(due, l.end())
		renewed = renewed || !l.fixed
	}
	if (renewed || h.suspect) && !h.renewing {
		due = earlier(due, h.engine.AtAge(h.renewAt))
	}
	return due
}

// Tick implements renewal.Task.
func (h *hold) Tick(now time.Time) (next time.Time, renew bool) {
	h.mu.Lock()
	over, gone := h.expire(now)
	if !h.gone {
		renew = !h.renewing && (h.needs().renewal > 0 || h.suspect) && h.engine.AgeAt(now) >= h.renewAt
		h.renewing = h.renewing || renew
		next = h.next()
	}
	h.mu.Unlock()
	h.announce(over, gone)
	return next, renew
}

// Suspect implements renewal.Task. Either the machine has slept, and the lease may have run out, or
// the clock was set, which changes nothing. Redis knows which, and has a sixth of the lease to say
// so. A clock that was merely set must not end the leases of a process whose server is far away, or
// whose connection has to be made anew.
func (h *hold) Suspect(now time.Time) (next time.Time, renew bool) {
	h.mu.Lock()
	h.doubt(h.engine.AgeAt(now))
	h.mu.Unlock()
	return h.Tick(now)
}

// doubt makes the hold suspect from that time on: Redis is to be asked at once. The caller holds the mutex.
func (h *hold) doubt(now time.Duration) {
	s := h.seldomToWrite()
	if !h.suspect {
		h.suspect, s.vouch = true, now+h.try()
	}
	if h.renewing {
		s.again = true // what is under way may have been done before
	} else {
		h.renewAt = now
	}
}

// reschedule sets when the hold is due, and gives the mutex back. The caller holds the mutex.
func (h *hold) reschedule() {
	gone, next := h.gone, h.next()
	h.mu.Unlock()
	if !gone {
		h.schedule(next)
	}
}

// schedule sets when the hold is due. If the hold has ended in the meantime, it may have left the
// scheduler before this put it there again, so schedule removes it once more.
func (h *hold) schedule(next time.Time) {
	h.engine.Renewals.Schedule(h, next)
	h.mu.Lock()
	gone := h.gone
	h.mu.Unlock()
	if gone {
		h.engine.Renewals.Remove(h)
	}
}

// endAt returns when a lease of that length ends here. It counts from the sending of the request,
// because the server counts from no earlier.
func endAt(sent time.Time, length time.Duration) time.Time {
	return sent.Add(length - margin(length))
}
