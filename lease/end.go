// How leases and holds end, and who is told.

package lease

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// end is how a lease or a hold has ended, and by which error that is told.
type end uint8

const (
	notYet end = iota
	byRelease
	byLoss
	byMaxHold
	byClose
	byItself // of a hold: its last lease was a fixed one, or had its MaxHold, and is over
)

// err returns the sentinel, or nil for what has not ended.
func (e end) err() error {
	switch e {
	case byRelease:
		return errs.Released
	case byLoss, byItself:
		return errs.Lost
	case byMaxHold:
		return errs.MaxHold
	case byClose:
		return errs.Closed
	default:
		return nil
	}
}

// ending is what remains to be told of a lease that has ended, once the hold's
// mutex is given back.
type ending struct {
	lease    *Lease
	how      end
	done     chan struct{}
	children map[*child]struct{}
}

// finish ends one lease under the mutex.
func (h *hold) finish(l *Lease, how end) ending {
	for at := &h.leases; *at != nil; at = &(*at).next {
		if *at == l {
			*at = l.next
			break
		}
	}
	h.count--
	l.next, l.ended = nil, how
	e := ending{lease: l, how: how}
	if l.rare != nil {
		e.done, e.children = l.rare.done, l.rare.children
		l.rare.children = nil
	}
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
	err := e.lease.error(e.how.err())
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
		case lost, l.fixed && !now.Before(l.rare.deadline):
			over = append(over, h.finish(l, byLoss))
		case l.rare != nil && !l.rare.maxHold.IsZero() && !now.Before(l.rare.maxHold):
			over = append(over, h.finish(l, byMaxHold))
		}
		l = next
	}
	switch {
	case lost:
		h.gone, h.lost = true, byLoss
	case h.count == 0 && !h.entering:
		h.gone, h.lost = true, byItself
	}
	return over, h.gone
}

// End implements engine.Held.
func (h *hold) End(cause error) {
	if errors.Is(cause, errs.Closed) {
		h.endAll(byClose, telemetry.LostClosed)
	} else {
		h.endAll(byLoss, telemetry.LostServer)
	}
}

// endAll ends the hold and every lease on it.
func (h *hold) endAll(how end, reason string) {
	h.mu.Lock()
	if h.gone {
		h.mu.Unlock()
		return
	}
	h.gone, h.lost = true, how
	var over []ending
	for h.leases != nil {
		over = append(over, h.finish(h.leases, how))
	}
	h.mu.Unlock()
	h.announce(over, true, reason)
}

// announce tells of leases that ended by themselves, and of the hold if it has
// ended with them. If it has not, Redis counts them still.
func (h *hold) announce(over []ending, gone bool, reason string) {
	for _, e := range over {
		e.tell()
		if e.how == byMaxHold {
			reason = telemetry.LostMaxHold
		}
	}
	if !gone {
		if len(over) > 0 {
			h.correct(0)
		}
		return
	}
	giveUpSeat(h.engine, h.resource, h.leave())
	if h.late != nil && reason != telemetry.LostClosed {
		h.tidy()
	}
	h.outlived()
	h.report(reason)
}

// tidy gives up what a late request may take again for nobody. Where the leases have
// ended by themselves the key is left to its time to live, since work may still be going
// on: unless that is over before the last of these requests can come.
func (h *hold) tidy() {
	h.mu.Lock()
	lost, left := h.lost, time.Until(h.deadline)
	h.mu.Unlock()
	switch {
	case lost != byItself:
		h.settle(h.late.until)
	case left < conn.Window:
		h.engine.Background(func() {
			if engine.Sleep(h.engine.Closing(), left) == nil {
				h.settle(h.late.until)
			}
		})
	}
}

// report logs and counts that the hold was lost.
func (h *hold) report(reason string) {
	h.engine.CountLost(h.resource.Kind(), reason)
	if reason != telemetry.LostClosed {
		h.engine.Log.Warn("holdfast: lost", "kind", h.resource.Kind(), "name", engine.LogName(h.resource.Name()),
			"owner", h.owner().Short(), "reason", reason, "held", engine.LogTime(h.engine.Age()-h.granted))
	}
}

// leave takes the hold off the scheduler and the registry. It returns the seat that
// its process does not need any more: see engine.Engine.Abandon.
func (h *hold) leave() (seat int64) {
	h.engine.Renewals.Remove(h)
	h.engine.Unregister(h.resource.Key(), h)
	return abandoned(h.engine, h.resource)
}
