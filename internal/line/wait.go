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
// if the thing was found held. The Outcome counts also if the wait has failed.
//
// A waiter that finds a line for the key joins it and asks nothing. Else it asks once, if that is
// of any use, and joins the line if it is refused. Where each waiter has a place in Redis's queue,
// it always asks once.
//
// The path of a waiter that something is passed to is short on purpose: when very many wait, each
// function through which a waiter returns is out of the processor's cache by then.
func (l *Lines) Wait(ctx context.Context, w *Waiting) (Outcome, error) {
	me := l.follow(w)
	if me == nil {
		var err error
		if me, err = l.enter(ctx, w); me == nil {
			return Outcome{}, err
		}
	}
	l.client.Telemetry.Waiting(w.Kind, 1)
	defer l.client.Telemetry.Waiting(w.Kind, -1)
	if !me.leads() {
		me.first = Held{} // too old to rely on by the time it leads
	}
	closed := l.ending(me)
	for {
		select {
		case <-me.turn:
			if me.granted || me.over != nil {
				over := me.over
				return l.served(w, me), over
			}
			outcome, err := l.gone(w, me, l.waitAsHead(ctx, w, me))
			if outcome.Handed.Token != 0 {
				l.reuse(me)
			}
			return outcome, err
		case <-closed:
			return l.gone(w, me, context.Cause(l.closing(w)))
		case <-me.nudged:
			if over, err := l.askNudged(ctx, w, me); over {
				return l.gone(w, me, err)
			}
		case <-ctx.Done():
			return l.gone(w, me, busy(ctx.Err()))
		}
	}
}

// enter asks once, if that is of any use, and puts the caller in its line if it is refused. It
// returns nil if the caller need not wait: it was granted the thing, or its request failed.
func (l *Lines) enter(ctx context.Context, w *Waiting) (*waiter, error) {
	first, err := l.first(ctx, w)
	if err != nil || first.Granted {
		return nil, err
	}
	return l.join(w, first), nil
}

// first asks once, for a waiter that does not stand in line yet, unless it must not ask.
func (l *Lines) first(ctx context.Context, w *Waiting) (Answer, error) {
	ask, held, asks := w.Place.Grain.policy().first(l, w.Key)
	switch {
	case held:
		return Answer{Held: NoKnownEnd}, nil
	case !asks || l.overtaking.ahead(w) != nil:
		return Answer{}, nil
	}
	ask.Owner = w.Place.Owner
	return w.Asker.Try(ctx, ask)
}

// askNudged is the request of a waiter that was nudged, so that it has a place of its own. over says
// that its wait has ended: it was granted the thing, or the request failed.
func (l *Lines) askNudged(ctx context.Context, w *Waiting, me *waiter) (over bool, err error) {
	answer, err := l.try(ctx, w, perWaiter{}.askAgain(l, me))
	me.place.heard(answer, err)
	return err != nil || answer.Granted, err
}

// gone takes a waiter whose wait has ended with err out of its line, and returns how the wait
// ended. If something was passed to it in the same moment, it has that.
func (l *Lines) gone(w *Waiting, me *waiter, err error) (Outcome, error) {
	outcome := l.leave(me)
	if outcome.Passed == nil {
		return outcome, err
	}
	l.client.Telemetry.Woken(w.Kind, telemetry.WokenTurn)
	return outcome, nil
}

// served returns the outcome of a waiter that was granted the thing by another, which has taken it
// out of the line. Nobody else knows the waiter any more, so it can be used again.
func (l *Lines) served(w *Waiting, me *waiter) Outcome {
	outcome := me.outcome
	if outcome.Passed != nil {
		l.client.Telemetry.Woken(w.Kind, telemetry.WokenTurn)
	}
	l.reuse(me)
	return outcome
}

// reuse keeps a waiter that nobody else knows any more for the next one.
func (l *Lines) reuse(me *waiter) {
	*me = waiter{turn: me.turn}
	l.spare.Put(me)
}

// waitAsHead is Wait for the head of a line, which may have asked once already. It returns nil once
// the head has the thing.
func (l *Lines) waitAsHead(ctx context.Context, w *Waiting, me *waiter) error {
	if closing := l.closing(w); closing.Err() != nil {
		return context.Cause(closing)
	}
	polls := false // its timer stands for a poll, and not for the end of the present grant
	sub, quiet := l.lead(w, me)
	if sub == nil {
		return nil // the thing was passed to it already
	}
	timer := l.timer(quiet)
	defer l.timers.Put(timer)
	defer timer.Stop() // before that
	if w.Weight > 0 {
		defer l.overtaking.arrive(w, me.since)()
	}
	for {
		reason, message, err := l.woken(ctx, w, me, sub, timer)
		if err != nil {
			return err
		}
		if l.handed(me, message) {
			l.client.Telemetry.Woken(w.Kind, reason)
			l.afterGrant(w, me, time.Until(me.outcome.Handed.Until))
			return nil
		}
		if rest := me.policy().rest(l, me, reason); rest > 0 {
			timer.Reset(rest)
			continue
		}
		told := reason != telemetry.WokenTimer || quiet == 0
		answer, passed, err := l.askAsHead(ctx, w, me, reason, told, polls)
		switch {
		case err != nil:
			if errors.As(err, new(forAll)) {
				l.endAll(me.line, err)
			}
			return err
		case passed:
			return nil
		case answer.Granted:
			l.afterGrant(w, me, answer.Lasts)
			return nil
		}
		quiet = answer.Held.nap()
		if polls = answer.Held.outlasts(quiet); polls {
			quiet = l.onGrid(quiet)
		}
		timer.Reset(quiet)
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

// askAsHead is one request of the head, which was woken for that reason. passed says that the thing
// has been passed to the head in the meantime, so that it did not ask. told says that the head did
// not wake by a poll alone. polls says that its timer stood for a poll.
func (l *Lines) askAsHead(ctx context.Context, w *Waiting, me *waiter, reason string, told, polls bool) (answer Answer, passed bool, err error) {
	ask, more, ok := me.policy().ask(l, me)
	if !ok {
		return Answer{}, true, nil
	}
	ask.Poll = polls && reason == telemetry.WokenTimer
	l.client.Telemetry.Woken(w.Kind, reason)
	answer, err = l.try(ctx, w, ask)
	nudged := me.policy().answered(l, me, ask, answer, err)
	if err != nil {
		return answer, false, err
	}
	if !told && (answer.Granted || nudged) {
		me.line.sub.Suspect() // a message should have come first, unless a lease was over
	}
	if more {
		answer.Held = Held{}
	}
	return answer, false, nil
}

// lead has the head listen for its line, and returns for how long the head need not ask. The
// subscription is nil if the thing has been passed to the head. While the head subscribes, nothing
// is passed to it, so that no other waiter becomes the head.
func (l *Lines) lead(w *Waiting, me *waiter) (*pubsub.Subscription, time.Duration) {
	q := me.line
	l.mu.Lock()
	if me.out {
		l.mu.Unlock()
		return nil, 0
	}
	sub, quiet := q.sub, me.policy().quiet(me)
	q.heldUntil, q.handed = time.Time{}, false
	if me.head.asking = sub == nil; me.terms != (Terms{}) {
		me.head.passed = make(chan struct{}, 1)
	}
	l.mu.Unlock()
	if sub != nil {
		return sub, quiet
	}
	sub = l.client.Subscriptions.Subscribe(w.channels()...)
	l.mu.Lock()
	defer l.mu.Unlock()
	q.sub, me.head.asking = sub, false
	return sub, quiet
}

func (w *Waiting) channels() []string {
	if w.Told == nil {
		return []string{w.Channel}
	}
	return w.Told.Channels()
}

// brief is how long a request may go unanswered without the error saying so, if ctx ends in the
// middle of it.
const brief = 100 * time.Millisecond

// try is Asker.Try for a waiter that has been told before that the thing is held.
func (l *Lines) try(ctx context.Context, w *Waiting, ask Ask) (Answer, error) {
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

// afterGrant tells the waiters behind the head what its grant, which lasts for that long, means for
// them.
func (l *Lines) afterGrant(w *Waiting, me *waiter, lasts time.Duration) {
	switch w.Grant {
	case Exclusive:
		me.line.heldUntil = time.Now().Add(lasts)
	case Common:
		l.endAll(me.line, nil)
	case Shared:
	}
}

// woken waits until something may have changed, and no waiter that must come first is left. It
// returns what woke it, and the last message; or the error that ends the wait.
func (l *Lines) woken(ctx context.Context, w *Waiting, me *waiter, sub *pubsub.Subscription, timer *time.Timer) (reason, message string, err error) {
	reason, err = l.park(ctx, w, me, sub, timer)
	if err == nil {
		err = l.giveWay(ctx, w)
	}
	if err != nil {
		return "", "", busy(err)
	}
	message = sub.Last()
	if w.Hearer != nil {
		if err := w.Hearer.Heard(message); err != nil {
			l.client.Telemetry.Woken(w.Kind, reason)
			return "", "", err
		}
	}
	return reason, message, nil
}

// park waits until something may have changed, and returns what woke it; or the error that ends the
// wait.
func (l *Lines) park(ctx context.Context, w *Waiting, me *waiter, sub *pubsub.Subscription, timer *time.Timer) (reason string, err error) {
	select {
	case <-sub.C():
		return telemetry.WokenMessage, nil
	case <-timer.C:
		return telemetry.WokenTimer, nil
	case <-me.head.passed:
		return "", nil
	case <-ctx.Done():
		return "", ctx.Err()
	case <-l.closing(w).Done():
		return "", context.Cause(l.closing(w))
	}
}

// pollGrid is between the instants on which the polls of one Client fall, so that the polls for many
// names go out together.
const pollGrid = 50 * time.Millisecond

// onGrid returns a shorter nap, which ends on the grid of this Client's polls.
func (l *Lines) onGrid(nap time.Duration) time.Duration {
	return nap - (l.awaited.age()+nap)%pollGrid
}

// busy adds to end, the reason why a wait ended, that the thing was held. It leaves errs.Closed as
// it is.
func busy(end error) error {
	if errors.Is(end, errs.Closed) {
		return end
	}
	return fmt.Errorf("%w: %w", errs.Busy, end)
}
