// The hold: what Redis knows, and how it is kept alive.

package lease

import (
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/renewal"
)

// hold is what Redis knows: one owner's possession of one thing, with one time to
// live, under one or more leases. It is the task that the scheduler renews.
//
// Its deadline is the local instant at which it counts as lost: the sending of
// the request that was answered last, plus the time to live that the answer
// gave, minus the margin for drifting clocks. Redis cannot give the thing to
// another before that.
type hold struct {
	entry    renewal.Entry
	member   engine.Member
	engine   *engine.Engine
	resource Resource
	number   int64 // the owner's, which is always one of this Client's
	late     *late // what requests could still do whose answers were never heard; nil: nothing
	replicas int32 // how many must acknowledge what prolongs it

	mu       sync.Mutex    // guards what follows, and the leases' own state
	count    int32         // how many leases there are
	token    int64         // the last given
	granted  time.Duration // when its first lease was, by the Client's age
	cohort   *cohort       // how far it may be passed on; nil: not at all
	deadline time.Time     // with its wall time, for the day that the machine sleeps
	renewAt  time.Duration // by the Client's age
	leases   *Lease        // those that have not ended, the last granted first
	seldom   *seldom       // what most holds never have; nil without
	lost     end           // why it is gone, unless it was released
	gone     bool          // it has ended for good: no lease can be added
	freed    bool          // lost, and given up in Redis all the same
	renewing bool          // the scheduler has asked for a renewal that is not answered yet
	overtook bool          // another call has prolonged it since
	suspect  bool          // the wall clock says that it may be over: ask
	entering bool          // a nested acquisition is on its way
	changing bool          // a change of the count is on its way; only one is at a time

	first Lease // the lease that began it, here to save an allocation
}

// late is what requests can still do that were not answered: make the hold anew until
// the not-after of the last, and take a place in the queue with it for the owner with
// the number seat; 0: for nobody.
type late struct {
	until int64
	seat  int64
}

// lateUntil returns the not-after of requests that could still make the hold anew; 0 if
// there are none.
func (h *hold) lateUntil() int64 {
	if h.late == nil {
		return 0
	}
	return h.late.until
}

// owner is under whom Redis knows the hold.
func (h *hold) owner() Owner { return NewOwner(h.engine.Client(), h.number) }

// Entry implements renewal.Task.
func (h *hold) Entry() *renewal.Entry { return &h.entry }

// Key implements renewal.Task.
func (h *hold) Key() string { return h.resource.Key() }

// Holder implements engine.Held.
func (h *hold) Holder() string { return h.owner().String() }

// Member implements engine.Held.
func (h *hold) Member() *engine.Member { return &h.member }

// Timeout implements renewal.Task: a sixth of the lease, so that several tries fit
// between the first and the deadline, or all that is left of it: the connection may
// have to be made yet, to a server far away. When the wall clock says that the lease
// is over, Redis has a sixth of the lease for all tries.
func (h *hold) Timeout() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	left := h.deadline.Sub(now)
	if h.suspect && h.overByWallClock(now) {
		left = min(left, h.seldom.vouch-h.engine.AgeAt(now))
	}
	return min(h.try(), max(left, shortestTry))
}

// try is how long one try of a renewal takes at the most.
func (h *hold) try() time.Duration {
	longest := MinLease
	for l := h.leases; l != nil; l = l.next {
		longest = max(longest, l.length)
	}
	return longest / 6
}

// shortestTry is how long a try takes at the most when there is no time left.
const shortestTry = 50 * time.Millisecond

// overByWallClock reports whether the hold's deadline has passed by the wall
// clock, which goes on while the machine sleeps.
func (h *hold) overByWallClock(now time.Time) bool {
	return !now.Round(0).Before(h.deadline.Round(0))
}

// length returns what the hold is renewed to, 0 if no lease on it is renewed.
func (h *hold) length() time.Duration {
	var d time.Duration
	for l := h.leases; l != nil; l = l.next {
		if !l.fixed {
			d = max(d, l.length)
		}
	}
	return d
}

// next returns when something of the hold is due: its deadline, a lease's own
// end, or a renewal.
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
		renew = !h.renewing && (h.length() > 0 || h.suspect) && h.engine.AgeAt(now) >= h.renewAt
		h.renewing = h.renewing || renew
		next = h.next()
	}
	h.mu.Unlock()
	h.announce(over, gone)
	return next, renew
}

// Suspect implements renewal.Task. The machine may have slept, and the lease with
// it; or the clock was set, which changes nothing. The server knows, and has a sixth of
// the lease to say so: a clock that was merely set must not end the leases of a process
// whose server is far away, or whose connection has to be made anew.
func (h *hold) Suspect(now time.Time) (next time.Time, renew bool) {
	h.mu.Lock()
	if renew = !h.renewing && !h.gone; renew {
		h.renewing = true
	}
	if !h.suspect {
		h.suspect, h.seldomly().vouch = true, h.engine.AgeAt(now)+h.try()
	}
	h.mu.Unlock()
	next, _ = h.Tick(now)
	return next, renew
}

// reschedule sets when the hold is due and gives the mutex back.
func (h *hold) reschedule() {
	gone, next := h.gone, h.next()
	h.mu.Unlock()
	if !gone {
		h.schedule(next)
	}
}

// schedule sets when the hold is due. One that has ended meanwhile, and left the
// scheduler before it came there again, leaves once more.
func (h *hold) schedule(next time.Time) {
	h.engine.Renewals.Schedule(h, next)
	h.mu.Lock()
	gone := h.gone
	h.mu.Unlock()
	if gone {
		h.engine.Renewals.Remove(h)
	}
}

// ttlOf returns the time to live in a Granted reply.
func ttlOf(call *conn.Call) time.Duration {
	return time.Duration(call.Int(2)) * time.Millisecond
}

// endOf returns when a lease of that length ends here that was granted by that
// call.
func endOf(call *conn.Call, length time.Duration) time.Time { return endAt(call.Sent, length) }

// endAt counts it from the sending, since the server counts from no earlier.
func endAt(sent time.Time, length time.Duration) time.Time {
	return sent.Add(length - margin(length))
}
