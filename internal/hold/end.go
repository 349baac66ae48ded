// How leases and holds end, and how their holders are notified.

package hold

import (
	"errors"
	"slices"
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

// endErrors has the error of each end; that of notYet is nil.
var endErrors = [...]error{
	byRelease: errs.Released, byLoss: errs.Lost, byGrace: errs.Lost, byExpiry: errs.Expired,
	byMaxHold: errs.MaxHold, bySuperseded: errs.Superseded, byClose: errs.Closed,
}

func (e end) err() error { return endErrors[e] }

// byItself reports whether a hold with this end has ended as its leases had agreed, and Redis may still
// have it: its last lease was a fixed one, or had a MaxHold, and that time is over; its grace begins; or a newer
// one wants it.
func (e end) byItself() bool {
	return e == byExpiry || e == byMaxHold || e == byGrace || e == bySuperseded
}

// finish ends one lease. The caller holds the mutex, and calls tell once it has given it back.
func (h *hold) finish(l *Lease, how end) {
	for at := &h.leases; *at != nil; at = &(*at).next {
		if *at == l {
			*at = l.next
			break
		}
	}
	h.count--
	l.next, l.ended = nil, how
	if l.rare != nil {
		l.rare.telling = true
	}
}

// tell notifies whoever has a context or the channel of a lease that finish has ended: it cancels the
// contexts and then closes the channel. So code that has waited on the channel never finds a context that
// goes on. It must be called without the mutex.
func (l *Lease) tell() {
	h := l.hold
	h.mu.Lock()
	r := l.rare
	if r == nil || !r.telling {
		h.mu.Unlock()
		return
	}
	children := r.children
	r.children = nil
	h.mu.Unlock()
	if r.noted {
		l.unnote()
	}
	if len(children) > 0 {
		err := l.Err()
		for c := range children {
			c.forget()
			c.cancel(err)
		}
	}
	h.mu.Lock()
	r.telling = false
	done := r.done
	h.mu.Unlock()
	if done != nil {
		close(done)
	}
}

// expire ends the leases whose time is over, and reports whether the hold has ended with them. The
// caller holds the mutex.
func (h *hold) expire(now time.Time) (over []*Lease, gone bool) {
	if h.gone {
		return nil, false
	}
	lost := !now.Before(h.deadline)
	for l, next := h.leases, (*Lease)(nil); l != nil; l = next {
		next = l.next
		if ended := l.overAt(now); ended != notYet {
			h.finish(l, ended)
			over = append(over, l)
		}
	}
	if h.count > 0 {
		return over, false
	}
	l := h.lossBy(over, now)
	if l.how.byItself() {
		h.seldomToWrite().kept = over // even if it is lost: what prolongs it may be answered yet
	}
	if lost || !h.entering {
		h.lose(l, now)
	}
	return over, h.gone
}

// endOver ends what is over, even if the scheduler is late: this process may have been suspended.
func (h *hold) endOver() {
	h.mu.Lock()
	over, gone := h.expire(time.Now())
	h.mu.Unlock()
	h.announce(over, gone)
}

// lossBy returns the loss of a hold that has ended as its last leases did; if it had none, because no
// renewal got through. The caller holds the mutex.
func (h *hold) lossBy(last []*Lease, now time.Time) loss {
	how := byLoss
	for i, l := range last {
		if i == 0 || l.ended != byExpiry {
			how = l.ended
		}
	}
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
	var over []*Lease
	for h.leases != nil {
		over = append(over, h.leases)
		h.finish(h.leases, l.how)
	}
	if (l.how.byItself() || l.how == byClose) && len(over) > 0 {
		h.seldom.kept = over
	}
	err := h.because(l.how)
	// While an entry is under way, which now fails, the last lease may have been released before.
	released := l.how.byItself() && len(h.seldom.kept) == 0
	h.mu.Unlock()
	h.announce(over, true)
	if released {
		h.settle(h.lateUntil())
	}
	return err
}

// forgo reports whether the Release of a lease that has ended leaves nobody under whom work may go on: it was not
// released before, and the others that ended with the hold were. The caller holds the mutex.
func (h *hold) forgo(l *Lease) bool {
	s := h.seldom
	if s == nil || l.ended == byRelease {
		return false
	}
	if i := slices.Index(s.kept, l); i >= 0 {
		s.kept = append(s.kept[:i:i], s.kept[i+1:]...) // a copy: others may be going through the leases that are over
		return len(s.kept) == 0
	}
	return len(s.kept) == 0 && !s.lost.how.byItself()
}

// announce notifies the holders of leases that ended without a release, and reports the hold if it
// has ended with them. If it has not, Redis still counts these leases, so announce corrects the
// count.
func (h *hold) announce(over []*Lease, gone bool) {
	for _, l := range over {
		l.tell()
	}
	if !gone {
		if len(over) > 0 {
			h.correct(0)
		}
		return
	}
	giveUpSeat(h.engine, h.resource, h.leave(), 0)
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
		h.settleAtItsEnd(h.late.until)
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
