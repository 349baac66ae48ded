// How leases and holds end, and how their holders are notified.

package hold

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// end is how a lease or a hold has ended. Its err is the error that says so.
type end uint8

const (
	notYet end = iota
	byRelease
	byLoss
	byGrace  // as byLoss, but Redis still has it, for the grace or because the whole that it was a part of has ended
	byExpiry // of a fixed lease, as agreed
	byMaxHold
	bySuperseded // a newer one wants it
	byClose
)

// err returns the sentinel error, or nil if nothing has ended.
func (e end) err() error {
	switch e {
	case byRelease:
		return errs.Released
	case byLoss, byGrace:
		return errs.Lost
	case byExpiry:
		return errs.Expired
	case byMaxHold:
		return errs.MaxHold
	case bySuperseded:
		return errs.Superseded
	case byClose:
		return errs.Closed
	default:
		return nil
	}
}

// byItself reports whether a hold with this end has ended as its leases had agreed, and Redis may still
// have it: its last lease was a fixed one, or had a MaxHold, and that time is over; its grace begins; or a newer
// one wants it.
func (e end) byItself() bool {
	return e == byExpiry || e == byMaxHold || e == byGrace || e == bySuperseded
}

// ending is a lease that has ended, and whose contexts and channel are still to be ended, once the
// hold's mutex is given back.
type ending struct {
	lease    *Lease
	telling  bool // there may be somebody to tell: see rare
	noted    bool // it has a note, which nobody should read any more
	children map[*child]struct{}
}

// finish ends one lease. The caller holds the mutex.
func (h *hold) finish(l *Lease, how end) ending {
	for at := &h.leases; *at != nil; at = &(*at).next {
		if *at == l {
			*at = l.next
			break
		}
	}
	h.count--
	l.next, l.ended = nil, how
	e := ending{lease: l}
	if r := l.rare; r != nil {
		e.telling, r.telling, e.noted = true, true, r.noted
		e.children, r.children = r.children, nil
	}
	return e
}

// tell cancels the lease's contexts and then closes its channel. So code that has waited on the
// channel never finds a context that goes on. It must be called without the mutex.
func (e ending) tell() {
	l := e.lease
	if !e.telling {
		return
	}
	if e.noted {
		l.unnote()
	}
	if len(e.children) > 0 {
		err := l.Err()
		for c := range e.children {
			c.forget()
			c.cancel(err)
		}
	}
	l.hold.mu.Lock()
	l.rare.telling = false
	done := l.rare.done
	l.hold.mu.Unlock()
	if done != nil {
		close(done)
	}
}

// expire ends the leases whose time is over, and reports whether the hold has ended with them. The
// caller holds the mutex.
func (h *hold) expire(now time.Time) (over []ending, gone bool) {
	if h.gone {
		return nil, false
	}
	lost := !now.Before(h.deadline)
	over, how := h.finishOver(now)
	if h.count == 0 && how.byItself() {
		h.keepFor(over)
	}
	switch {
	case lost || h.count == 0 && !h.entering:
		h.lose(h.lossBy(how, now), now)
	case h.count == 0 && len(over) > 0:
		h.seldomToWrite().unentered = h.lossBy(how, now)
	}
	return over, h.gone
}

// lossBy returns the loss of a hold that has ended as its last leases did. The caller holds the mutex.
func (h *hold) lossBy(how end, now time.Time) loss {
	switch how {
	case byExpiry:
		return loss{how: how}
	case byMaxHold:
		return loss{how: how, reason: telemetry.LostMaxHold}
	default:
		l := h.silent(now)
		l.how = how
		return l
	}
}

// finishOver ends the leases whose time has come. how says how the hold ends, if it does: as its leases did,
// or by its loss if it had none. The caller holds the mutex.
func (h *hold) finishOver(now time.Time) (over []ending, how end) {
	how = byLoss
	for l := h.leases; l != nil; {
		next := l.next
		ended := l.overAt(now)
		if ended != notYet {
			over = append(over, h.finish(l, ended))
		}
		if ended != notYet && (ended != byExpiry || len(over) == 1) {
			how = ended
		}
		l = next
	}
	return over, how
}

// overAt returns how the lease has ended by now, or notYet. The caller holds the mutex.
func (l *Lease) overAt(now time.Time) end {
	r, left := l.rare, l.hold.deadline.Sub(now)
	stop := left <= 0 || r != nil && left <= r.grace
	switch {
	case l.fixed && (!now.Before(r.deadline) || stop && r.deadline.Sub(now) < rounding):
		return byExpiry
	case left <= 0:
		return byLoss
	case stop:
		return byGrace
	case r != nil && !r.maxHold.IsZero() && !now.Before(r.maxHold):
		return byMaxHold
	default:
		return notYet
	}
}

// rounding is how much longer a fixed lease may last here than in Redis, which counts whole
// milliseconds.
const rounding = 2 * time.Millisecond

// End implements engine.Held.
func (h *hold) End(cause error) {
	if errors.Is(cause, errs.Closed) {
		_ = h.endAll(closedUnder)
	} else {
		_ = h.endAll(notThere)
	}
}

// endAll ends the hold and every lease on it. It returns why the hold has ended, even if it had
// ended before this call.
func (h *hold) endAll(l loss) error {
	h.mu.Lock()
	if h.gone {
		defer h.mu.Unlock()
		if h.lost() == notYet {
			return errs.Released
		}
		return h.because(h.lost())
	}
	h.lose(l, time.Now())
	var over []ending
	for h.leases != nil {
		over = append(over, h.finish(h.leases, l.how))
	}
	err := h.because(l.how)
	// While an entry is under way, which now fails, the last lease may have been released before.
	released := l.how.byItself() && len(over) == 0 && h.seldom.unentered.how == notYet
	if l.how.byItself() && len(over) > 0 {
		h.keepFor(over)
	}
	h.mu.Unlock()
	h.announce(over, true)
	if released {
		h.settle(h.lateUntil())
	}
	return err
}

// keepFor notes that the hold has ended with these leases, and that Redis may still have it: it is given up once
// each of them is released. The caller holds the mutex.
func (h *hold) keepFor(over []ending) {
	kept := len(over)
	for _, e := range over {
		e.lease.rarely().kept = &kept
	}
	h.seldomToWrite().kept = &kept
}

// forgo reports whether the Release of a lease that has ended leaves nobody under whom work may go on: it was not
// released before, and the others that ended with the hold were. The caller holds the mutex.
func (h *hold) forgo(l *Lease) bool {
	if l.ended == byRelease {
		return false
	}
	if r := l.rare; r != nil && r.kept != nil && r.kept == h.seldom.kept {
		*r.kept--
		last := *r.kept == 0
		r.kept = nil
		return last
	}
	return h.seldom == nil || !h.seldom.lost.how.byItself() && !h.seldom.unentered.how.byItself()
}

// announce notifies the holders of leases that ended without a release, and reports the hold if it
// has ended with them. If it has not, Redis still counts these leases, so announce corrects the
// count.
func (h *hold) announce(over []ending, gone bool) {
	for _, e := range over {
		e.tell()
	}
	if !gone {
		if len(over) > 0 {
			h.correct(0)
		}
		return
	}
	giveUpSeat(h.engine, h.resource, h.leave())
	if h.late != nil && h.seldom.lost.reason != telemetry.LostClosed {
		h.tidy()
	}
	h.outlived()
	h.report()
}

// tidy gives up the hold if a late request may take it again though nobody wants it any more. If
// the leases have ended as agreed, work may still be going on, so the key is left to its time to
// live. If that is over before the last of these requests can arrive, tidy gives the hold up then.
func (h *hold) tidy() {
	h.mu.Lock()
	lost, left := h.lost(), time.Until(h.deadline)
	h.mu.Unlock()
	switch {
	case !lost.byItself():
		h.settle(h.late.until)
	case left < conn.MaxWindow:
		h.engine.Background(func() {
			if engine.Sleep(h.engine.Closing(), left) == nil {
				h.settle(h.late.until)
			}
		})
	}
}

// report counts a hold that ended without being released. It also logs it, unless a fixed lease
// ended as agreed, a newer one wants it, or the Client itself ended the hold.
func (h *hold) report() {
	kind, s := h.kind(), h.seldom // nobody changes it any more
	h.engine.CountPermits(kind, -h.permits())
	if s.lost.how == byExpiry {
		h.engine.CountExpired(kind, s.held)
		return
	}
	h.engine.CountLost(kind, s.lost.reason)
	if s.lost.reason != telemetry.LostClosed && s.lost.reason != telemetry.LostSuperseded {
		h.engine.Log.Warn("holdfast: lost", "kind", kind.Name, "name", engine.LogName(h.resource.Name()),
			"owner", h.owner().Short(), "reason", s.lost.reason, "held", engine.LogTime(s.held),
			"cause", errs.Plain(s.lost.error(s.held)))
	}
}

// leave takes the hold out of the scheduler and the registry. It returns the seat that the process
// does not need any more, or 0: see line.Lines.Abandon.
func (h *hold) leave() (seat int64) {
	h.die()
	h.engine.Renewals.Remove(h)
	h.engine.Unregister(h.resource.Key(), h)
	return abandoned(h.engine, h.resource)
}
