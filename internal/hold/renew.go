// The renewal of a hold: what Redis is asked, and what the answer changes.

package hold

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Part implements engine.Renewable. A hold with Replicas is renewed by a call of its own: only such
// a call waits for replicas.
func (h *hold) Part() engine.Part {
	r, ok := h.resource.(Grouped)
	if !ok {
		return engine.Part{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.needs()
	if h.gone || n.replicas > 0 { // if it is gone, Renewal then returns nil
		return engine.Part{}
	}
	return engine.Part{Script: r.RenewMany(), Owner: h.number, Length: n.renewal, Until: h.renewable()}
}

// Renewal implements engine.Renewable. For a hold that is only suspect, the length is 0, which asks
// Redis and changes nothing. A renewal must not run after the deadline, because it would revive a
// hold that was given up.
func (h *hold) Renewal() *conn.Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gone {
		h.renewing, h.overtook = false, false
		return nil
	}
	n := h.needs()
	call := h.resource.Renew(h.owner(), n.renewal)
	call.Until, call.AnyTime, call.Replicas = h.renewable(), true, n.replicas
	return call
}

// Renewed implements engine.Renewable.
func (h *hold) Renewed(r engine.Renewed) {
	kind := h.kind()
	l, gone := goneBy(r.Err, r.Held)
	switch {
	case gone:
		h.engine.CountRenewal(kind, telemetry.OutcomeGone)
		_ = h.endAll(l)
	case r.Err != nil:
		h.engine.CountRenewal(kind, telemetry.OutcomeFailed)
		h.renewalFailed(errs.Plain(r.Err))
	case r.Short:
		h.engine.CountRenewal(kind, telemetry.OutcomeFailed)
		h.renewalFailed(errs.NotReplicated.Error())
	default:
		h.engine.CountRenewal(kind, telemetry.OutcomeRenewed)
		h.prolong(r)
		if r.Cut > 0 {
			h.cutShort(r.Cut)
		}
	}
}

// prolong takes in a renewal that was answered. If another call has prolonged the hold while the
// renewal was under way, nobody knows which of the two Redis saw first. No call shortens the time to
// live, so the later end is the right one.
func (h *hold) prolong(r engine.Renewed) {
	h.mu.Lock()
	overtaken := h.overtook
	h.renewing, h.overtook, h.suspect = false, false, false
	again := false
	if h.seldom != nil {
		h.seldom.failure = ""
		again, h.seldom.again = h.seldom.again, false
	}
	end := endAt(r.Sent, r.TTL)
	if h.gone {
		h.mu.Unlock()
		h.prolongedTooLate(end)
		return
	}
	switch n := h.needs(); {
	case n.renewal > 0:
		if !overtaken {
			h.deadline = end
		}
		h.deadline = later(h.deadline, end)
		h.renewAt = renewalAfter(h.engine.AgeAt(r.Sent), n.renewal-n.early)
	case r.Ends() && !overtaken:
		h.deadline = earlier(h.deadline, end)
	}
	if again { // the answer may be that of a server which is the master no more; the time to vouch for it goes on
		h.suspect, h.renewAt = true, h.engine.Age()
	}
	h.reschedule()
}

// prolonged takes in that a call other than a renewal has prolonged the hold until end. The caller
// holds the mutex.
func (h *hold) prolonged(end time.Time) {
	h.deadline = later(h.deadline, end)
	h.overtook = h.renewing
}

// renewalAfter returns when a lease that its holder has for that length, granted or renewed at sent, is renewed next.
// That is after a third of the length, or up to a two-hundredth of that third earlier, so that
// leases that are due at nearly the same time are due at the same time.
func renewalAfter(sent, length time.Duration) time.Duration {
	third := length / 3
	return (sent + third).Truncate(third / 200)
}

// renewalFailed makes the renewal due again soon. If the hold is over by the wall clock, and Redis
// has not vouched for it in time, the hold is lost.
func (h *hold) renewalFailed(failure string) {
	now := time.Now()
	h.mu.Lock()
	h.renewing, h.overtook = false, false
	s := h.seldomToWrite()
	if s.failure == "" {
		s.failing = h.renewAt
	}
	s.failure = failure
	// Sooner if little time is left, as after a hand-over; but not so soon that many renewals that
	// fail together keep the process busy.
	pause := min(h.try()/10, max(h.deadline.Sub(now)/8, 50*time.Millisecond))
	h.renewAt = h.engine.AgeAt(now) + max(pause, 10*time.Millisecond)
	if h.suspect && h.overByWallClock(now) && h.engine.AgeAt(now) >= s.vouch {
		slept := h.slept()
		h.mu.Unlock()
		_ = h.endAll(slept)
		return
	}
	h.reschedule()
}

// prolonging returns the call as one that prolongs the hold for the lease: it must take no effect once
// the lease has ended, even if Redis still has the hold.
func (l *Lease) prolonging(call *conn.Call) *conn.Call {
	h := l.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	call.Until, call.Replicas = earlier(h.renewable(), l.end()), h.needs().replicas
	return call
}

// lastFor makes Redis keep the hold for d from now. If that is done while the lease lasts, it calls took with
// the mutex held. If the lease has ended, it returns why.
func (l *Lease) lastFor(ctx context.Context, d time.Duration, took func(*conn.Call)) error {
	h := l.hold
	h.mu.Lock()
	ended := l.because()
	if ended == nil { // in one step: from here on a Release passes nothing on
		h.endCohort()
	}
	h.mu.Unlock()
	if ended != nil {
		return ended
	}
	call := l.prolonging(h.resource.Renew(h.owner(), d))
	err := h.renewedBy(ctx, call)
	h.noteUnheard(call)
	if ended := l.why(); ended != nil && errors.Is(err, errs.Lost) {
		return ended // which is ErrReleased if a Release was faster
	}
	if err != nil {
		return err
	}
	if call.Short() {
		return call.Shortage()
	}
	end := endAt(call.Sent, engine.TTL(call))
	h.mu.Lock()
	if ended := l.because(); ended != nil {
		h.mu.Unlock()
		h.prolongedTooLate(end)
		return ended
	}
	h.prolonged(end)
	took(call)
	h.reschedule()
	return nil
}

// prolongedTooLate takes in that a call has prolonged, until end, a hold that ended in the
// meantime. If the hold was lost, it is given up, or it would stay in Redis for another whole
// lease. A released hold that AtLeast keeps until an earlier time ends at that time again, and so
// does one that gives way. A hold whose leases ended as agreed is not given up: work may still be
// going on, and a Release frees it.
func (h *hold) prolongedTooLate(end time.Time) {
	h.mu.Lock()
	lost, stays, yields := h.lost(), h.stillStays() > 0, h.yields()
	if lost.byItself() {
		h.deadline = later(h.deadline, end)
	}
	h.mu.Unlock()
	if yields {
		h.engine.Background(func() { h.cut() })
	}
	if lost == byLoss || lost == notYet && stays {
		h.settle(0)
	}
}
