// The one loop in which Holdfast waits.

package line

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/pubsub"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// PollBound is the longest that a waiter goes without asking. Messages only make it faster. It is a
// little more than a second, so that a process that waits in vain costs Redis less than one command
// a second.
const PollBound = 1250 * time.Millisecond

// Wait waits until the thing is granted, is passed on or handed to the waiter, or a request fails,
// ctx ends, or the Client closes. If ctx ends the wait, the error matches ctx's error, and errs.Busy
// if the thing was found held. The Outcome counts even if the wait has failed.
//
// The path of a waiter that something is passed to is short on purpose: when very many wait, each
// function through which a waiter returns is out of the processor's cache by then.
func (l *Lines) Wait(ctx context.Context, w *Want) (Outcome, error) {
	me, err := l.enter(ctx, w)
	if me == nil {
		return Outcome{}, err
	}
	l.client.Telemetry.Waiters(w.Kind, 1)
	defer l.client.Telemetry.Waiters(w.Kind, -1)
	closed := l.ending(me)
	for {
		select {
		case <-me.turn:
			return l.turned(ctx, me)
		case <-closed:
			return l.gone(me, context.Cause(l.closing(w)))
		case <-me.nudged:
			if over, err := l.askNudged(ctx, me); over {
				return l.gone(me, err)
			}
		case <-ctx.Done():
			return l.gone(me, busy(ctx.Err()))
		}
	}
}

// enter puts the caller in its line. If there is no line yet, or if each waiter must ask, the caller
// first asks once, unless that is of no use, and joins the line only if it is refused. enter returns
// nil if the caller need not wait: its request was granted, or failed.
func (l *Lines) enter(ctx context.Context, w *Want) (*waiter, error) {
	if me := l.follow(w); me != nil {
		return me, nil
	}
	first, err := l.first(ctx, w)
	if err != nil || first.Granted {
		return nil, err
	}
	return l.join(w, first), nil
}

// first asks once, for a waiter that does not stand in line yet, unless it must not ask.
func (l *Lines) first(ctx context.Context, w *Want) (Answer, error) {
	ask, held, asks := w.Place.Grain.policy().arrive(l, w.Key)
	switch {
	case held:
		return Answer{Held: NoKnownEnd}, nil
	case !asks || l.overtaking.ahead(w) != nil:
		return Answer{}, nil
	}
	ask.Owner = w.Place.Owner
	return w.Asker.Try(ctx, ask)
}

// askNudged is the request of a waiter that was nudged: only those with a place of their own are. over says
// that its wait has ended: it was granted the thing, or the request failed.
func (l *Lines) askNudged(ctx context.Context, me *waiter) (over bool, err error) {
	answer, err := l.try(ctx, me.want, perWaiter{}.askAgain(l, me))
	me.place.heard(answer, err)
	return err != nil || answer.Granted, err
}

// gone takes a waiter whose wait has ended with err out of its line, and returns how the wait
// ended. If something was passed to it in the same moment, it has that.
func (l *Lines) gone(me *waiter, err error) (Outcome, error) {
	outcome := l.leave(me)
	if outcome.Passed == nil {
		return outcome, err
	}
	l.client.Telemetry.Woken(me.want.Kind, telemetry.WokenTurn)
	return outcome, nil
}

// turned goes on with a waiter whose turn has come: it is the head now, or another has ended its wait and
// taken it out of the line.
func (l *Lines) turned(ctx context.Context, me *waiter) (outcome Outcome, err error) {
	if !me.granted && me.over == nil {
		outcome, err = l.gone(me, l.waitAsHead(ctx, me))
		if outcome.Handed.Token != 0 {
			l.reuse(me)
		}
		return outcome, err
	}
	outcome, err = me.outcome, me.over
	if outcome.Passed != nil {
		l.client.Telemetry.Woken(me.want.Kind, telemetry.WokenTurn)
	}
	l.reuse(me)
	return outcome, err
}

// reuse keeps a waiter that nobody else knows any more for the next one.
func (l *Lines) reuse(me *waiter) {
	*me = waiter{turn: me.turn}
	l.spare.Put(me)
}

// waitAsHead is Wait for the head of a line, which may have asked once already. It returns nil once
// the head has the thing.
func (l *Lines) waitAsHead(ctx context.Context, me *waiter) error {
	if closing := l.closing(me.want); closing.Err() != nil {
		return context.Cause(closing)
	}
	sub, pause := l.lead(me)
	if sub == nil {
		return nil // the thing was passed to it already
	}
	if me.want.Weight > 0 {
		defer l.overtaking.arrive(me.want, me.since)()
	}
	timer := l.timer(pause.length)
	defer func() {
		timer.Stop()
		l.timers.Put(timer)
	}()
	for {
		woke, err := l.woken(ctx, me, sub, timer, pause)
		if err != nil {
			return err
		}
		over := false
		if over, pause, err = l.step(ctx, me, woke); over || err != nil {
			return err
		}
		timer.Reset(pause.length)
	}
}

// timer returns a timer that is set to d. Where a lock goes from process to process, each waiter is
// the head in its turn, and most heads have it before their timer has run out.
func (l *Lines) timer(d time.Duration) *time.Timer {
	timer, used := l.timers.Get().(*time.Timer)
	if !used {
		return time.NewTimer(d)
	}
	timer.Reset(d)
	return timer
}

// step is what the head does when it was woken. over says that it has the thing. Else the head need
// not ask again before the next pause is over, or its wait ends with the error.
func (l *Lines) step(ctx context.Context, me *waiter, woke waking) (over bool, next pause, err error) {
	if l.handed(me, woke.message) {
		l.client.Telemetry.Woken(me.want.Kind, woke.by)
		l.afterGrant(me, time.Until(me.outcome.Handed.Until))
		return true, next, nil
	}
	if rest := me.policy().rest(l, me, woke); rest.length > 0 {
		return false, rest, nil
	}
	answer, passed, err := l.askAsHead(ctx, me, woke)
	switch {
	case err != nil:
		if errors.As(err, new(forAll)) {
			l.endAll(me.line, err)
		}
		return false, next, err
	case passed:
		return true, next, nil
	case answer.Granted:
		l.afterGrant(me, answer.Lasts)
		return true, next, nil
	default:
		return false, l.pauseFor(answer.Held), nil
	}
}

// askAsHead is one request of the head. passed says that the thing has been passed to the head in
// the meantime, so that it did not ask.
func (l *Lines) askAsHead(ctx context.Context, me *waiter, woke waking) (answer Answer, passed bool, err error) {
	ask, more, ok := me.policy().ask(l, me)
	if !ok {
		return Answer{}, true, nil
	}
	ask.Poll = woke.after.then == pollDue
	l.client.Telemetry.Woken(me.want.Kind, woke.by)
	answer, err = l.try(ctx, me.want, ask)
	nudged := me.policy().answered(l, me, ask, answer, err)
	if err != nil {
		return answer, false, err
	}
	if woke.after != (pause{}) && (answer.Granted || nudged) {
		me.line.sub.Suspect() // a message should have come first, unless a lease was over
	}
	if more {
		answer.Held = Held{}
	}
	return answer, false, nil
}

// lead makes the head listen for its line, and returns for how long the head need not ask. The
// subscription is nil if the thing has been passed to the head. While the head subscribes, nothing
// is passed to it, so that no other waiter becomes the head.
func (l *Lines) lead(me *waiter) (*pubsub.Subscription, pause) {
	q := me.line
	l.mu.Lock()
	if me.out {
		l.mu.Unlock()
		return nil, pause{}
	}
	sub, first := q.sub, me.policy().first(me)
	q.heldUntil = time.Time{}
	if me.head.asking = sub == nil; me.terms != (Terms{}) {
		me.head.passed = make(chan struct{}, 1)
	}
	l.mu.Unlock()
	if sub != nil {
		return sub, first
	}
	sub = l.client.Subscriptions.Subscribe(me.want.channels()...)
	l.mu.Lock()
	defer l.mu.Unlock()
	q.sub, me.head.asking = sub, false
	return sub, first
}

func (w *Want) channels() []string {
	if w.Told == nil {
		return []string{w.Channel}
	}
	return w.Told.Channels()
}

// brief is how long a request may go unanswered without the error saying so, if ctx ends in the
// middle of it.
const brief = 100 * time.Millisecond

// try is Asker.Try for a waiter to which an answer has said that the thing is held.
func (l *Lines) try(ctx context.Context, w *Want, ask Ask) (Answer, error) {
	asked := time.Now()
	answer, err := w.Asker.Try(ctx, ask)
	switch {
	case err == nil || ctx.Err() == nil || errors.Is(err, errs.Busy):
		return answer, err
	case errors.Is(err, errs.Unavailable) && time.Since(asked) < brief:
		return answer, busy(ctx.Err())
	default:
		return answer, busy(err)
	}
}

// heard takes in the answer to a request in a waiter's own place.
func (p *place) heard(a Answer, err error) {
	p.doubt = p.doubt || a.Doubt
	if err == nil {
		p.kept = a.Kept
	}
}

// afterGrant gives the waiters behind the head what the head's grant, which lasts for that long,
// means for them.
func (l *Lines) afterGrant(me *waiter, lasts time.Duration) {
	switch me.want.Grant {
	case Exclusive:
		me.line.heldUntil = time.Now().Add(lasts)
	case Common:
		l.endAll(me.line, nil)
	case Shared:
	}
}

type waking struct {
	by      string // as metrics have it; "" for something that was passed to it
	message string // the last message
	after   pause  // the pause that is over, if its timer has woken the head; else zero
}

// woken waits until something may have changed, or the timer says that the pause is over, and until
// no waiter that must come first is left. It returns what woke it, or the error that ends the wait.
func (l *Lines) woken(ctx context.Context, me *waiter, sub *pubsub.Subscription, timer *time.Timer, pause pause) (waking, error) {
	woke, err := l.park(ctx, me, sub, timer, pause)
	if err == nil {
		err = l.giveWay(ctx, me.want)
	}
	if err != nil {
		return waking{}, busy(err)
	}
	woke.message = sub.Last()
	if me.want.Hearer != nil {
		if err := me.want.Hearer.Heard(woke.message); err != nil {
			l.client.Telemetry.Woken(me.want.Kind, woke.by)
			return waking{}, err
		}
	}
	return woke, nil
}

// park waits until something may have changed, or the timer says that the pause is over.
func (l *Lines) park(ctx context.Context, me *waiter, sub *pubsub.Subscription, timer *time.Timer, pause pause) (waking, error) {
	select {
	case <-sub.C():
		return waking{by: telemetry.WokenMessage}, nil
	case <-timer.C:
		return waking{by: telemetry.WokenTimer, after: pause}, nil
	case <-me.head.passed:
		return waking{}, nil
	case <-ctx.Done():
		return waking{}, ctx.Err()
	case <-l.closing(me.want).Done():
		return waking{}, context.Cause(l.closing(me.want))
	}
}

// busy adds to end, the reason why a wait ended, that the thing was held. It leaves errs.Closed as
// it is.
func busy(end error) error {
	if errors.Is(end, errs.Closed) {
		return end
	}
	return fmt.Errorf("%w: %w", errs.Busy, end)
}
