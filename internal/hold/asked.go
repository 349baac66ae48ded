// Holders that are asked for what they hold: Asked notifies them, and Supersede makes them give way. A message is a
// hint to ask Redis, never a proof, and a poll makes up for one that is lost.

package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/line"
)

// Asked is a Resource for which a holder can be asked.
type Asked interface {
	Noticed
	Keeping
	// Wanted asks whether anybody wants it from that holder. The reply is Done if so, and else Refused.
	Wanted(holder Owner) *conn.Call
	// NewClaim returns the claim of one Lock with Supersede. It asks nobody.
	NewClaim() Claim
}

// Claim is the wish of a Lock with Supersede: it is served unless a newer one comes.
type Claim interface {
	// Name names the claim as the newest. Once that is done, it asks whether the claim is the newest still. It
	// returns errs.Superseded if it is not.
	Name(ctx context.Context) error
	// Withdraw takes the claim back, in the background and within limit, so that those that came before are served.
	Withdraw(limit time.Duration)
}

// Asked is Asked of lease.Lease.
func (l *Lease) Asked() <-chan struct{} {
	if l.absent() {
		return l.Done()
	}
	r, ok := l.hold.resource.(Asked)
	if !ok {
		return nil
	}
	l.hold.mu.Lock()
	rare, first := l.rarely(), l.rare.asked == nil
	if first {
		rare.asked = make(chan struct{})
	}
	asked := rare.asked
	l.hold.mu.Unlock()
	if first {
		l.listen(r, asked)
	}
	return asked
}

// listen closes asked once somebody wants what the lease is on. It ends with the lease.
func (l *Lease) listen(r Asked, asked chan<- struct{}) {
	e := l.hold.engine
	ctx, stop := context.WithCancel(l.Context(e.Closing()))
	e.Watch(ctx, r.Notices(), line.PollBound, func() {
		bounded, cancel := engine.Bounded(ctx)
		defer cancel()
		call := r.Wanted(l.Owner())
		if e.Conn.Run(bounded, call) != nil || call.Status() != conn.Done {
			return
		}
		stop()
		l.hold.mu.Lock()
		defer l.hold.mu.Unlock()
		if l.ended == notYet {
			close(asked)
		}
	})
}

// forNewest is fresh, and with Supersede it grants only to the newest that wants the resource: if another is the
// newest by the time of the grant, it returns errs.Superseded. A try is named only after its grant, because it
// must not end a hold that it does not get.
func (a *acquisition) forNewest(ctx context.Context, wait bool) (l *Lease, err error) {
	r, ok := a.resource.(Asked)
	if !ok || !a.settings.Supersede {
		return a.fresh(ctx, wait)
	}
	if ctx.Value(twiceKey{}) != nil {
		return nil, fmt.Errorf("a lock with Supersede, under Pausable: %w", errs.BadArgument)
	}
	c := r.NewClaim()
	if wait {
		err = c.Name(ctx)
	}
	if err == nil {
		l, err = a.fresh(ctx, wait)
	}
	if err == nil {
		err = l.confirm(ctx, c)
	}
	if err != nil {
		c.Withdraw(settleLimit(a.settings.Length))
		return nil, err
	}
	l.hold.giveWayTo(r, c)
	return l, nil
}

// twiceKey is the key under which a context says that its caller may give the lock back and lock anew.
type twiceKey struct{}

// Twice returns ctx for a caller that may give the lock back and lock anew. With Supersede that would supersede
// those who came in between, so it is refused.
func Twice(ctx context.Context) context.Context { return context.WithValue(ctx, twiceKey{}, true) }

// confirm asks whether the claim, for which l was granted, is the newest still. If not, or if the lease is over by
// then, it gives l back and returns why.
func (l *Lease) confirm(ctx context.Context, c Claim) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	err := c.Name(l.Context(ctx))
	if ended := l.why(); ended != nil {
		err = ended
	} else if l.hold.engine.Closing().Err() != nil {
		err = errs.Closed
	}
	if err != nil {
		l.disown()
	}
	return err
}

// giveWayTo ends the hold once a newer claim has come.
func (h *hold) giveWayTo(r Asked, c Claim) {
	h.engine.Watch(h.life(), r.Notices(), line.PollBound, func() {
		ctx, cancel := engine.Bounded(h.life())
		defer cancel()
		if errors.Is(c.Name(ctx), errs.Superseded) {
			h.giveWay()
		}
	})
}

// giveWay ends the hold here. Redis keeps it until its leases are released, and for no longer than they need after
// their end.
func (h *hold) giveWay() {
	h.mu.Lock()
	now := time.Now()
	left := max(h.needs().after, h.stillStays())
	if left > 0 && left < h.deadline.Sub(now) && !h.gone {
		h.seldomToWrite().yields = now.Add(left)
	}
	h.mu.Unlock()
	_ = h.endAll(overtaken)
	h.cutOn()
}

// cutOn cuts each second, until the hold is released, or no request that was on its way can prolong it any more.
// Shutdown does not wait for that.
func (h *hold) cutOn() {
	for range 1 + conn.MaxWindow/time.Second {
		if !h.cut() || engine.Sleep(h.engine.Draining(), time.Second) != nil {
			return
		}
	}
}

// cut makes Redis keep a hold that has given way for no longer than it yields. It reports false if the hold is not
// one to cut, or is released. If the request fails, the hold lasts for its lease.
func (h *hold) cut() bool {
	h.mu.Lock()
	if !h.yields() || h.seldom.freed {
		h.mu.Unlock()
		return false
	}
	left := max(time.Until(h.seldom.yields), time.Millisecond)
	h.mu.Unlock()
	ctx, cancel := engine.Bounded(h.engine.Closing())
	defer cancel()
	_ = h.engine.Conn.Run(ctx, h.keep(left))
	return true
}

// yields reports whether the hold has given way, and is to end sooner than its lease. The caller holds the mutex.
func (h *hold) yields() bool { return h.lost() == bySuperseded && !h.seldom.yields.IsZero() }
