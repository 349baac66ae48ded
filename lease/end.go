// How leases and holds end, and who is told.

package lease

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// ending is what remains to be told of a lease that has ended, once the hold's
// mutex is given back.
type ending struct {
	lease    *Lease
	cause    error
	done     chan struct{}
	children map[*child]struct{}
}

// finish ends one lease under the mutex.
func (h *hold) finish(l *Lease, cause error) ending {
	for at := &h.leases; *at != nil; at = &(*at).next {
		if *at == l {
			*at = l.next
			break
		}
	}
	h.count--
	l.next, l.ended = nil, cause
	e := ending{lease: l, cause: cause, done: l.done, children: l.children}
	l.children = nil
	return e
}

// tell closes the lease's channel and cancels its contexts. It must be called
// without the mutex.
func (e ending) tell() {
	if e.done != nil {
		close(e.done)
	}
	if len(e.children) == 0 {
		return
	}
	err := e.lease.error(e.cause)
	for c := range e.children {
		c.forget()
		c.cancel(err)
	}
}

// expire ends, under the mutex, the leases whose time has come. It reports
// whether the hold has ended with them.
func (h *hold) expire(now time.Time) (over []ending, gone bool) {
	if h.gone {
		return nil, false
	}
	lost := !now.Before(h.deadline)
	for l := h.leases; l != nil; {
		next := l.next
		switch {
		case lost, l.fixed && !now.Before(l.deadline):
			over = append(over, h.finish(l, errs.Lost))
		case !l.maxHold.IsZero() && !now.Before(l.maxHold):
			over = append(over, h.finish(l, errs.MaxHold))
		}
		l = next
	}
	h.gone = lost || h.count == 0 && !h.entering
	if h.gone {
		h.lost = errs.Lost
	}
	return over, h.gone
}

// End implements engine.Held.
func (h *hold) End(cause error) {
	reason := telemetry.LostServer
	if errors.Is(cause, errs.Closed) {
		reason = telemetry.LostClosed
	}
	h.endAll(cause, reason)
}

// endAll ends the hold and every lease on it.
func (h *hold) endAll(cause error, reason string) {
	h.mu.Lock()
	if h.gone {
		h.mu.Unlock()
		return
	}
	h.gone, h.lost = true, cause
	var over []ending
	for h.leases != nil {
		over = append(over, h.finish(h.leases, cause))
	}
	h.mu.Unlock()
	h.announce(over, true, reason)
}

// announce tells of leases that ended by themselves, and of the hold if it has
// ended with them. If it has not, Redis counts them still.
func (h *hold) announce(over []ending, gone bool, reason string) {
	for _, e := range over {
		e.tell()
		if errors.Is(e.cause, errs.MaxHold) {
			reason = telemetry.LostMaxHold
		}
	}
	if !gone {
		if len(over) > 0 {
			h.correct(0)
		}
		return
	}
	h.leave()
	if h.lateUntil != 0 && reason != telemetry.LostClosed {
		h.settle(h.lateUntil) // a late request could take it again, for nobody
	}
	h.engine.Report(func() { h.report(reason) })
}

// report logs and counts that the hold was lost.
func (h *hold) report(reason string) {
	h.engine.Telemetry.Active(h.resource.Kind(), -1)
	h.engine.Telemetry.Lost(h.resource.Kind(), reason)
	if reason != telemetry.LostClosed {
		h.engine.Log.Warn("holdfast: lost", "kind", h.resource.Kind(), "name", Quote(h.resource.Name()),
			"owner", h.owner.Short(), "reason", reason, "held", time.Since(h.granted))
	}
}

// leave takes the hold off the scheduler and the registry.
func (h *hold) leave() {
	h.engine.Renewals.Remove(h)
	h.engine.Unregister(h.resource.Key(), h)
}
