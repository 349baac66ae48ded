// Acquiring: from a request to a lease on a hold.

package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Request asks for a lease. It is for the packages of the synchronizers.
type Request struct {
	Engine   *engine.Engine
	Resource Resource
	Settings Settings
	// Try says to ask once and not to wait.
	Try bool
	// As is the owner that asks, if others already know it by its place in a queue. The default is
	// a new owner.
	As Owner
	// Afresh says never to re-enter a hold that the context carries.
	Afresh bool
}

// Acquire waits until the resource is granted, or re-enters the hold on it that
// ctx carries. The errors are those of Locker.
func (q Request) Acquire(ctx context.Context) (*Lease, error) {
	op := "lock"
	if q.Try {
		op = "try lock"
	}
	if err := q.Settings.check(); err != nil {
		return nil, opError(op, q.Resource, err)
	}
	if err := q.Engine.Begin(); err != nil {
		return nil, opError(op, q.Resource, err)
	}
	defer q.Engine.Done()
	if q.Try {
		bounded, cancel := engine.Bounded(ctx)
		defer cancel()
		ctx = bounded
	}
	ctx, span := q.Engine.Telemetry.Acquire(ctx, q.Resource.Kind(), q.Resource.Name())
	l, how, err := q.run(ctx)
	outcome := telemetry.OutcomeOf(err, telemetry.OutcomeAcquired) // whatever the cause of ctx is
	if err != nil {
		err = opError(op, q.Resource, errs.Ended(ctx, q.foreign(ctx, err)))
	}
	told := telemetry.Acquired{
		Outcome:   outcome,
		Attempts:  how.attempts,
		Reentrant: how.reentrant,
		Token:     tokenOf(l),
		Err:       err,
	}
	if how.waited {
		told.Waited = span.Elapsed()
	}
	span.End(told)
	return l, err
}

// course is how an acquisition went, for telemetry.
type course struct {
	attempts  int
	waited    bool
	reentrant bool
}

func (q *Request) run(ctx context.Context) (*Lease, course, error) {
	if !q.Afresh {
		if outer := Carried(ctx, q.Engine, q.Resource); outer != nil {
			a := q.acquisition()
			a.course.reentrant = true
			l, err := outer.hold.enter(ctx, outer, a)
			return l, a.course, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, course{}, err
	}
	l, turn, err := q.follow(ctx)
	if l != nil || err != nil {
		return l, course{waited: true}, err
	}
	a := q.acquisition()
	a.turn = turn
	l, err = a.fresh(ctx, !q.Try)
	how := a.course
	if err == nil && !how.waited {
		*a = acquisition{} // no other goroutine has seen it
		q.Engine.Scratch.Put(a)
	}
	return l, how, err
}

// acquisition returns the state of a Request that asks Redis. A Request that is passed a lease
// needs none.
func (q *Request) acquisition() *acquisition {
	a, used := q.Engine.Scratch.Get().(*acquisition)
	if !used {
		a = new(acquisition)
	}
	a.engine, a.resource, a.settings, a.owner = q.Engine, q.Resource, q.Settings, q.As
	return a
}

// tokenOf returns the token of l, or 0 if no lease was granted.
func tokenOf(l *Lease) int64 {
	if l == nil {
		return 0
	}
	return l.token
}

// acquisition is one Request under way.
type acquisition struct {
	engine   *engine.Engine
	resource Resource
	settings Settings
	owner    Owner

	turn      line.Turn // what Follow returned, if it has followed others
	issued    line.Ticket
	ticket    *line.Ticket // &issued; nil if there is no queue, or no wait
	grant     grant        // what was granted
	lateUntil int64        // the not-after of requests whose reply was never heard; 0: there are none
	lateSeat  int64        // the owner that was to have the process's next place by these; 0: none
	marked    bool         // a refused try may have left something in Redis
	course    course
}

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
	return grant{sent: call.Sent, until: endOf(call, ttlOf(call)), token: call.Int(3)}
}

// fresh acquires the resource for an owner that does not have it yet.
func (a *acquisition) fresh(ctx context.Context, wait bool) (*Lease, error) {
	if a.owner.IsZero() {
		a.owner = NewOwner(a.engine.NewOwner())
	}
	err := a.granted(ctx, wait)
	if l := a.inherited(); l != nil || err != nil {
		a.vacate()
		if a.lateUntil != 0 || a.marked {
			a.undo()
		}
		return l, err
	}
	l, err := a.begin()
	if err != nil {
		a.undo()
		giveUpSeat(a.engine, a.resource, abandoned(a.engine, a.resource))
	}
	return l, err
}

// granted asks for the resource, and if wait is true waits for it. It returns nil once it is
// granted.
func (a *acquisition) granted(ctx context.Context, wait bool) error {
	if !wait {
		if a.engine.Lines.Overtakes(a.resource.Waiting()) {
			return errs.Busy
		}
		v, err := a.try(ctx)
		if err == nil && !v.Granted {
			return errs.Busy
		}
		return err
	}
	w := a.resource.Waiting()
	w.Kind, w.Try, w.Ticket = a.resource.Kind(), a.try, a.queue()
	var err error
	if a.turn.Leads() {
		a.course.waited, err = true, a.engine.Lines.Lead(ctx, w, a.turn)
	} else {
		a.course.waited, err = a.engine.Lines.Wait(ctx, w)
	}
	for a.lostInheritance() {
		w.Ticket = a.queue()
		_, err = a.engine.Lines.Wait(ctx, w)
	}
	if w.Grant == line.Exclusive {
		err = hinted(err, a.engine, a.resource)
	}
	if err == nil && a.issued.Token != 0 {
		a.handed()
	}
	return err
}

// hinted adds a likely mistake of the program to the error of a wait that found the thing held, if
// the holder is this same Client.
func hinted(err error, e *engine.Engine, r Resource) error {
	if errors.Is(err, errs.Busy) && e.Holds(r.Key()) {
		return fmt.Errorf("%w (the holder is this same Client: a lease that is not released, or whose context was not passed on?)", err)
	}
	return err
}

// try asks Redis once.
func (a *acquisition) try(ctx context.Context) (line.Verdict, error) {
	if a.issued.Reserve > 0 {
		a.issued.Publish = a.engine.Publish(ctx)
	}
	call := a.ask()
	call.Replicas = a.settings.replicas
	err := a.engine.Conn.Run(ctx, call)
	a.course.attempts += call.Attempts
	if notAfter, unheard := call.Outstanding(); unheard {
		a.lateUntil, a.issued.Doubt = max(a.lateUntil, notAfter), true
		a.lateSeat = a.issued.Next
	}
	if err != nil {
		return line.Verdict{}, err
	}
	a.placed(call)
	v := line.Verdict{Granted: call.Status() == conn.Done, For: ttlOf(call)}
	switch {
	case v.Granted && call.Short():
		a.marked, a.issued.Doubt = true, true
		return line.Verdict{}, call.Shortage()
	case v.Granted:
		a.grant = grantOf(call)
		a.grant.reserved = a.reserved(call)
	default:
		a.marked = a.stands()
	}
	a.engine.Smalls.Put(call)
	return v, nil
}

// begin makes the hold and its first lease from what was granted. If it returns an error, the
// caller must give the grant back.
func (a *acquisition) begin() (*Lease, error) {
	h := &hold{
		engine:   a.engine,
		resource: a.resource,
		number:   a.owner.id,
		token:    a.grant.token,
		granted:  a.engine.AgeAt(a.grant.sent),
		replicas: int32(a.settings.replicas),
		deadline: a.grant.until,
	}
	if a.lateUntil != 0 {
		h.late = &late{until: a.lateUntil, seat: a.lateSeat}
	}
	h.join(a)
	l := h.add(&h.first, a)
	if now := time.Now(); !now.Before(l.end()) || a.engine.Closing().Err() != nil {
		return nil, a.tooLate(now.Before(a.grant.until))
	}
	next := h.next()
	a.engine.Register(a.resource.Key(), h) // from here on other goroutines may end it
	h.schedule(next)
	a.engine.Telemetry.Active(a.resource.Kind(), 1)
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
	case a.engine.Closing().Err() != nil:
		return errs.Closed
	case lasts && a.settings.maxHold > 0:
		return fmt.Errorf("granted, but the answer came after %v: %w", a.settings.maxHold, errs.MaxHold)
	default:
		return fmt.Errorf("granted, but the answer came after the lease was over: %w", errs.Lost)
	}
}

// add puts the lease l on the hold, with what the acquisition's call has granted.
func (h *hold) add(l *Lease, a *acquisition) *Lease {
	s := a.settings
	l.hold, l.fixed, l.length, l.token = h, s.fixed, s.length, h.token
	if s.fixed {
		l.rarely().deadline = endAt(a.grant.sent, s.length)
	} else if due := a.renewAt(); h.leases == nil || due < h.renewAt || h.length() == 0 {
		h.renewAt = due
	}
	if s.maxHold > 0 {
		l.rarely().maxHold = a.grant.sent.Add(s.maxHold)
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
	return renewalAfter(granted, a.settings.length)
}
