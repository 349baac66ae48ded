// Holders that are asked for what they hold: Asked tells them, and Supersede has them give way. A message is a hint
// to ask Redis, never a proof, and a poll makes up for one that is lost.

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
	// Claim names the claimant as the newest that wants it, if came is 0; for one that was granted it, it asks
	// whether a newer one has come since. Claimed says what the answer was: when the claimant came, and whether it is
	// the newest still.
	Claim(claimant Owner, came int64, publish string) *conn.Call
	Claimed(claim *conn.Call) (came int64, newest bool)
	// Withdraw takes the claim back.
	Withdraw(claimant Owner) *conn.Call
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

// claim is the wish of a Lock with Supersede: it is served unless a newer one comes.
type claim struct {
	engine   *engine.Engine
	resource Asked
	as       Owner
	came     int64 // when it was named; 0: it is not, as far as is known
	late     int64 // the not-after of requests whose reply was never heard; 0: there are none
}

// forNewest is fresh, and with Supersede it grants to the newest that wants the resource: it returns
// errs.Superseded if that is another by the time of the grant. A try is named only then, because it must not end a
// hold that it does not get.
func (a *acquisition) forNewest(ctx context.Context, wait bool) (l *Lease, err error) {
	r, ok := a.resource.(Asked)
	if !ok || !a.settings.Supersede {
		return a.fresh(ctx, wait)
	}
	if ctx.Value(twiceKey{}) != nil {
		return nil, fmt.Errorf("a lock with Supersede, under Pausable: %w", errs.BadArgument)
	}
	c := &claim{engine: a.engine, resource: r, as: NewOwner(a.engine.NewOwner())}
	if wait {
		err = c.name(ctx)
	}
	if err == nil {
		l, err = a.fresh(ctx, wait)
	}
	if err == nil {
		err = c.confirm(ctx, l)
	}
	if err != nil {
		c.withdraw(a.settings.Length)
		return nil, err
	}
	l.hold.giveWayTo(c)
	return l, nil
}

// twiceKey is the key under which a context says that its caller may give the lock back and lock anew.
type twiceKey struct{}

// Twice returns ctx for a caller that may give the lock back and lock anew. With Supersede that would supersede who
// came in between, so it is refused.
func Twice(ctx context.Context) context.Context { return context.WithValue(ctx, twiceKey{}, true) }

// confirm asks whether the claimant, which was granted l, is the newest still. If not, or if the lease is over by
// then, it gives l back and returns why.
func (c *claim) confirm(ctx context.Context, l *Lease) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.hold.life(), cancel)()
	err := c.name(ctx)
	if ended := l.why(); ended != nil {
		err = ended
	} else if c.engine.Closing().Err() != nil {
		err = errs.Closed
	}
	if errors.Is(err, errs.Closed) { // the lease may have ended with the Client, which leaves the hold in Redis
		giveUp(c.engine, c.resource, l.Owner(), l.hold.lateUntil(), l.length)
	}
	if err != nil {
		l.disown()
	}
	return err
}

// name names the claimant, or asks whether it is the newest still. It returns errs.Superseded if it is not.
func (c *claim) name(ctx context.Context) error {
	call := c.resource.Claim(c.as, c.came, c.engine.Publish(ctx))
	err := c.engine.Conn.Run(ctx, call)
	notAfter, unheard := call.Outstanding()
	if unheard {
		c.late = max(c.late, notAfter)
	}
	if err != nil {
		return err
	}
	came, newest := c.resource.Claimed(call)
	if !newest {
		return errs.Superseded
	}
	c.came = came
	return nil
}

// withdraw takes the name back, in the background, so that those who came before are served. That is tried for
// as long as a lease.
func (c *claim) withdraw(length time.Duration) {
	if c.came == 0 && c.late == 0 {
		return
	}
	c.engine.Settle(c.late, settleLimit(length), func(ctx context.Context) (*conn.Call, error) {
		call := c.resource.Withdraw(c.as)
		call.Cleanup = true
		return call, c.engine.Conn.Run(ctx, call)
	})
}

// giveWayTo ends the hold once a newer claim has come.
func (h *hold) giveWayTo(c *claim) {
	h.engine.Watch(h.life(), c.resource.Notices(), line.PollBound, func() {
		ctx, cancel := engine.Bounded(h.life())
		defer cancel()
		if errors.Is(c.name(ctx), errs.Superseded) {
			h.giveWay()
		}
	})
}

// giveWay ends the hold here. Redis keeps it until its leases are released, and no longer than their grace, if each
// of them has one.
func (h *hold) giveWay() {
	h.mu.Lock()
	if grace := h.graceOfAll(); grace > 0 && !h.gone {
		yields := time.Now().Add(max(grace, h.stillStays()))
		if yields.Before(h.deadline) {
			h.seldomToWrite().yields = yields
		}
	}
	underWay := h.renewing || h.seldom != nil && h.seldom.prolongs != 0
	h.mu.Unlock()
	_ = h.endAll(overtaken)
	if h.cut() && underWay {
		h.engine.Background(h.cutAgain)
	}
}

// cutAgain cuts once no request that was on its way can prolong the hold any more. Shutdown does not wait for that.
func (h *hold) cutAgain() {
	ctx, stop := context.WithCancel(h.engine.Closing())
	defer stop()
	defer context.AfterFunc(h.engine.Draining(), stop)()
	if engine.Sleep(ctx, conn.MaxWindow) == nil {
		h.cut()
	}
}

// graceOfAll returns the longest grace of the leases, or 0 if one of them has none. The caller holds the mutex.
func (h *hold) graceOfAll() (longest time.Duration) {
	for l := h.leases; l != nil; l = l.next {
		if l.rare == nil || l.rare.grace == 0 {
			return 0
		}
		longest = max(longest, l.rare.grace)
	}
	return longest
}

// cut has Redis keep a hold that gives way for what is left of its time, and reports whether it is to. It does
// nothing once the hold is released. If the request fails, the hold lasts for its lease.
func (h *hold) cut() bool {
	h.mu.Lock()
	if h.lost() != bySuperseded || h.seldom.yields.IsZero() || h.seldom.freed {
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
