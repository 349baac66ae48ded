// From a grant to a lease: the hold begins.

package hold

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// grant is what an acquisition was granted.
type grant struct {
	sent     time.Time // no lease of this grant began before that
	until    time.Time // when it ends here
	token    int64
	reserved int64 // how many more tokens are reserved
	partial  bool  // it ends before the whole lease would, which is still to be asked for
}

// grantOf returns what a call has granted.
func grantOf(call *conn.Call) grant {
	return grant{sent: call.Sent, until: endAt(call.Sent, engine.TTL(call)), token: engine.Token(call)}
}

// keep begins the hold that was granted. If that comes too late, it gives the grant back.
func (a *acquisition) keep() (*Lease, error) {
	l, err := a.begin()
	switch {
	case err != nil:
		a.undo()
		giveUpSeat(a.engine, a.resource, abandoned(a.engine, a.resource), 0)
		return nil, err
	case a.engine.Closing().Err() != nil || a.turnedAway(): // which may have looked before the hold was registered
		l.disown() // this may pass it on, so undo must not give it up as well
		return nil, errs.Closed
	default:
		return l, nil
	}
}

// begin makes the hold and its first lease from the grant. If it returns an error, there is no hold, and
// the caller must give the grant back.
func (a *acquisition) begin() (*Lease, error) {
	h := &hold{
		engine:   a.engine,
		resource: a.resource,
		number:   a.owner.id,
		given:    given{token: a.grant.token, granted: a.engine.AgeAt(a.grant.sent)},
		kept:     kept{deadline: a.grant.until, group: a.kind.Group, ofQuorum: a.member},
	}
	if a.lateUntil != 0 {
		h.late = &late{until: a.lateUntil, seat: a.lateSeat}
	}
	h.join(a)
	l := h.add(&h.first, a)
	if now := time.Now(); !now.Before(l.end()) || a.engine.Closing().Err() != nil || a.turnedAway() {
		return nil, a.tooLate(now.Before(a.grant.until.Add(-a.settings.Grace)))
	}
	next := h.next()
	a.engine.Register(a.resource.Key(), h) // from here on other goroutines may end it
	h.schedule(next)
	h.active(1)
	if a.settings.Notified {
		h.watch()
	}
	if above := h.under(); above != nil {
		above.outlived() // it may have ended before h was registered
	}
	if a.engine.Closing().Err() != nil {
		h.End(errs.Closed) // Close may have looked before h was registered
	}
	return l, nil
}

// tooLate returns the error of a grant that is not kept: the Client is closing; or MaxHold is over,
// though Redis still has the hold (lasts); or the answer came so late that the lease is over.
func (a *acquisition) tooLate(lasts bool) error {
	switch {
	case a.engine.Closing().Err() != nil || a.turnedAway():
		return errs.Closed
	case lasts && a.settings.MaxHold > 0:
		return fmt.Errorf("granted, but the answer came after %v: %w", a.settings.MaxHold, errs.MaxHold)
	default:
		return fmt.Errorf("granted, but the answer came after the lease was over: %w", errs.Lost)
	}
}

// add puts the lease l on the hold, with what the acquisition's call has granted.
func (h *hold) add(l *Lease, a *acquisition) *Lease {
	s := a.settings
	l.hold, l.fixed, l.length, l.token = h, s.Fixed, s.Length, h.token
	if s.Fixed {
		l.rarely().deadline = endAt(a.grant.sent, s.Length).Add(-s.Grace)
	} else if due := a.renewAt(); h.leases == nil || due < h.renewAt || h.needs().renewal == 0 {
		h.renewAt = due
	}
	if s.MaxHold > 0 {
		l.rarely().maxHold = a.grant.sent.Add(s.MaxHold)
	}
	if s.Grace > 0 {
		l.rarely().grace = s.Grace
	}
	if s.Replicas > 0 {
		l.rarely().replicas = s.Replicas
	}
	l.next, h.leases = h.leases, l
	h.count++
	return l
}

// renewAt returns when the lease is first renewed, by the Client's age.
func (a *acquisition) renewAt() time.Duration {
	granted := a.engine.AgeAt(a.grant.sent)
	if a.grant.partial {
		return granted + wholeAfter
	}
	return renewalAfter(granted, a.settings.Length-a.settings.Grace)
}
