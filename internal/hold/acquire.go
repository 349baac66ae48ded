// Acquiring: from a request to a lease on a hold.

package hold

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Request asks for a lease.
type Request struct {
	Engine   *engine.Engine
	Resource Resource
	Settings Settings
	// Try says to ask once and not to wait, and for no longer than engine.TryBound.
	Try bool
	// AtOnce says that there is nothing to wait for: if it is not granted, another holds it. Transient
	// errors of Redis are retried until ctx ends all the same.
	AtOnce bool
	// As is the owner that asks, if others already know it by its place in a queue. The default is
	// a new owner.
	As Owner
	// Op is what errors call it. The default is "lock", or "try lock" for a Try.
	Op string
	// Afresh says never to re-enter a hold that the context carries.
	Afresh bool
}

// Acquire waits until the resource is granted, or re-enters the hold on it that
// ctx carries. The errors are those of Locker.
func (q Request) Acquire(ctx context.Context) (*Lease, error) {
	op := q.op()
	if err := q.Settings.Check(); err != nil {
		return nil, OpError(op, q.Resource, err)
	}
	if err := q.Engine.Begin(); err != nil {
		return nil, OpError(op, q.Resource, err)
	}
	defer q.Engine.Done()
	q.Engine.Present()
	if q.Try {
		bounded, cancel := engine.Bounded(ctx)
		defer cancel()
		ctx = bounded
	}
	ctx, span := q.Engine.Telemetry.Acquire(ctx, kindOf(q.Resource, isMember(ctx)), q.Resource.Name())
	l, how, err := q.run(ctx, span.Kind())
	outcome := telemetry.OutcomeOf(err, telemetry.OutcomeAcquired) // whatever the cause of ctx is
	if errors.Is(err, Concluded) {
		outcome = telemetry.OutcomeConcluded
	} else if err != nil {
		err = OpError(op, q.Resource, errs.Ended(ctx, q.foreign(ctx, err)))
	}
	told := telemetry.Acquired{
		Outcome:   outcome,
		Attempts:  how.attempts,
		Reentrant: how.reentrant,
		Token:     l.Token(),
		Err:       err,
	}
	if how.waited {
		told.Waited = span.Elapsed()
	}
	span.End(told)
	return l, err
}

func (q *Request) op() string {
	switch {
	case q.Op != "":
		return q.Op
	case q.Try:
		return "try lock"
	default:
		return "lock"
	}
}

// course is how an acquisition went, for telemetry.
type course struct {
	attempts  int
	waited    bool
	reentrant bool
}

func (q *Request) run(ctx context.Context, kind telemetry.Kind) (*Lease, course, error) {
	a, used := q.Engine.Scratch.Get().(*acquisition)
	if !used {
		a = new(acquisition)
	}
	a.engine, a.resource, a.settings, a.owner, a.kind = q.Engine, q.Resource, q.Settings, q.As, kind
	a.ofWork, a.member = ofWork(ctx, q.Engine), isMember(ctx)
	var outer *Lease
	if !q.Afresh {
		outer = Carried(ctx, q.Engine, q.Resource)
	}
	var l *Lease
	err := ctx.Err()
	switch {
	case outer != nil:
		a.course.reentrant = true
		l, err = outer.hold.enter(ctx, outer, a)
	case a.turnedAway():
		err = errs.Closed
	case err == nil:
		l, err = a.forNewest(ctx, !q.Try && !q.AtOnce)
	}
	how := a.course
	if err != nil {
		err = a.busy(err)
	}
	*a = acquisition{} // its wait is over, so no other goroutine knows it any more
	q.Engine.Scratch.Put(a)
	return l, how, err
}

// acquisition is one Request under way.
type acquisition struct {
	engine   *engine.Engine
	resource Resource
	settings Settings
	owner    Owner
	kind     telemetry.Kind // what is measured of it

	waiting   line.Want
	grant     grant   // what was granted
	lateUntil int64   // the not-after of requests whose reply was never heard; 0: there are none
	lateSeat  int64   // the owner that may have got the process's next place for nobody; 0: none
	marks     bool    // a refused request may leave something in Redis
	marked    bool    // one may have done so
	refusal   refusal // the last one
	course    course
	ofWork    bool // it was asked for under a lease that lasts, so that Shutdown does not refuse it
	member    bool // it is a member of a quorum
}

// turnedAway reports whether Shutdown has begun and does not wait for the work that this
// acquisition belongs to.
func (a *acquisition) turnedAway() bool {
	return !a.ofWork && a.engine.Draining().Err() != nil
}

// fresh acquires the resource for an owner that does not have it yet.
func (a *acquisition) fresh(ctx context.Context, wait bool) (*Lease, error) {
	if a.owner.IsZero() {
		a.owner = NewOwner(a.engine.NewOwner())
	}
	for {
		passed, err := a.granted(ctx, wait)
		if passed == nil && err == nil {
			return a.keep()
		}
		if a.lateUntil != 0 || a.marked {
			a.undo()
		}
		if err != nil {
			return nil, err
		}
		turnedAway := a.turnedAway()
		if passed.lasts() && !turnedAway {
			return passed, nil
		}
		// The lease was over before anybody could use it, for example because the process stood still
		// just then; or Shutdown has begun. Only this acquisition knows of that lease. So it releases
		// the lease, and waits again.
		passed.disown()
		if turnedAway {
			return nil, errs.Closed
		}
		a.lateUntil, a.lateSeat, a.marked, a.waiting = 0, 0, false, line.Want{}
		a.owner = NewOwner(a.engine.NewOwner())
	}
}

// granted asks for the resource, and if wait is true waits for it. Without an error the resource is granted:
// by a holder of this process, which has passed on the lease that granted returns; or, if it returns nil, by
// an answer or a message, and a.grant has what was granted.
func (a *acquisition) granted(ctx context.Context, wait bool) (passed *Lease, err error) {
	w := &a.waiting
	a.resource.Describe(w)
	m, ok := a.resource.(Marking)
	a.marks = ok && m.Marks()
	if !wait {
		return nil, a.once(ctx)
	}
	w.Kind, w.Asker = a.kind, a
	w.Hearer, _ = a.resource.(line.Hearer)
	if !a.ofWork {
		w.Closing = a.engine.Draining()
	}
	a.takePlace()
	out, err := a.engine.Lines.Wait(ctx, w)
	a.course.waited = a.course.waited || out.Waited
	if out.Orphan != 0 {
		a.become(out.Orphan)
		a.marked = true // so that undo gives up that seat
	}
	switch {
	case out.Passed != nil:
		return out.Passed.(*Lease), nil
	case err == nil && out.Handed.Token != 0:
		a.handed(out.Handed)
	case err != nil && w.Grant == line.Exclusive:
		err = hinted(err, a.engine, a.resource)
	}
	return nil, err
}

func (a *acquisition) once(ctx context.Context) error {
	if a.engine.Lines.Overtakes(&a.waiting) {
		return errs.Busy
	}
	answer, err := a.Try(ctx, line.Ask{})
	if err == nil && !answer.Granted {
		return errs.Busy
	}
	return err
}

// hinted adds a hint to the error of a wait that found the resource held by this same Client: that
// is likely a mistake of the program.
func hinted(err error, e *engine.Engine, r Resource) error {
	if errors.Is(err, errs.Busy) && e.Holds(r.Key()) {
		return fmt.Errorf("%w (the holder is this same Client: a lease that is not released, or whose context was not passed on?)", err)
	}
	return err
}

// Try implements line.Asker.
func (a *acquisition) Try(ctx context.Context, ask line.Ask) (line.Answer, error) {
	if answer, enough, err := a.look(ctx, ask); enough {
		return answer, err
	}
	call := a.call(ctx, ask)
	call.Replicas = a.settings.Replicas
	err := a.engine.Conn.Run(ctx, call)
	a.course.attempts += call.Attempts
	notAfter, unheard := call.Outstanding()
	if unheard {
		a.lateUntil, a.lateSeat = max(a.lateUntil, notAfter), ask.Next
	}
	answer := line.Answer{Doubt: unheard}
	switch {
	case errors.Is(err, errs.NoPermits):
		return answer, line.ForAll(err)
	case err != nil:
		return answer, err
	}
	answer.Granted = call.Status() == conn.Done
	if answer.Granted && call.Short() {
		a.marked, a.lateSeat, answer.Doubt = true, ask.Next, true
		return answer, call.Shortage()
	}
	var entered Entered
	if ask.InQueue {
		entered = a.resource.(Queueing).Entered(call)
		a.placed(&answer, entered, call.Sent)
	}
	if answer.Granted {
		answer.Lasts, a.grant = engine.TTL(call), grantOf(call)
		a.grant.reserved = entered.Reserved
	} else {
		answer.Held, a.marked = line.HeldByTTL(engine.TTL(call)), a.marks
		a.refusal = refusal{reply: call.Reply, sent: call.Sent, held: answer.Held}
		err = concluded(a.resource, call)
	}
	a.engine.Smalls.Put(call)
	return answer, err
}
