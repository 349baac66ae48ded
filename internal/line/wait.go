// The one loop in which Holdfast waits.

package line

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/pubsub"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// PollBound is the longest that a waiter goes without asking. Messages only make it faster. It is a
// little more than a second, so that a process that waits in vain costs Redis less than one command
// a second.
const PollBound = 1250 * time.Millisecond

// Verdict is the outcome of a try.
type Verdict struct {
	Granted bool
	// For is how long the grant lasts. If the try was refused, it is how long the present holder's
	// grant lasts; negative if that has no end.
	For time.Duration
}

// Waiting is what the engine needs to know to wait for something.
type Waiting struct {
	Kind    string // for metrics
	Key     string // of the line
	Channel string // where releases are published
	Told    Told   // if set, asked for the channels instead of Channel, once they are needed
	Try     func(ctx context.Context) (Verdict, error)
	Grant   Grant
	// Weight is how much the waiter asks for, if waiters may ask for different amounts: see
	// overtaking. 0 if they may not.
	Weight int
	// Group is the same for all waiters that ask for different weights of one thing.
	Group string
	// Ticket is the waiter's place in a queue that Redis keeps; nil if it keeps none.
	Ticket *Ticket
	// Marks says that a refused try leaves something in Redis. A waiter that leaves must take it
	// away again, which a release does.
	Marks bool
}

// Told knows the channels on which changes are published.
type Told interface {
	// Channels returns all of these channels.
	Channels() []string
}

// Grant says what a grant to the head of a line means for the waiters behind it.
type Grant int

const (
	// Exclusive: nothing is left until the thing is released. The next waiter waits for a message.
	Exclusive Grant = iota
	// Shared: there may be more. The next waiter tries at once.
	Shared
	// Common: it is for everybody. All waiters have it.
	Common
)

// Wait tries until a try is granted or fails, ctx ends, or the Client closes. It is the one loop in
// which Holdfast waits: try; subscribe; try again whenever a message comes, a subscription is
// confirmed anew, the holder's lease is over, or PollBound has passed.
//
// The waiters of one process stand in a line for each key, and only the first of them tries. If ctx
// ends the wait, the error matches ctx's error, and errs.Busy if the thing was found held. Wait
// reports whether it had to wait.
func (l *Lines) Wait(ctx context.Context, w Waiting) (waited bool, err error) {
	first := Verdict{}
	each := w.Ticket != nil && w.Ticket.Grain == PerWaiter
	if each {
		w.Ticket.Follows = !l.empty(w.Key)
	}
	switch {
	case w.Ticket != nil && !each && l.client.Holds(w.Key):
		first.For = -1 // this Client holds it: Redis would refuse
	case w.Ticket != nil && !each && l.leftOpen(w.Key):
	case each || l.empty(w.Key) && l.overtaking.ahead(w) == nil:
		first, err = w.Try(ctx)
		if err != nil || first.Granted {
			return false, err
		}
	}
	l.client.Telemetry.Waiting(w.Kind, 1)
	defer l.client.Telemetry.Waiting(w.Kind, -1)

	me := l.join(w.Key, w.Ticket)
	if w.Weight > 0 {
		me.since = time.Now()
	}
	return true, l.gone(w, me, l.waitInLine(ctx, w, me, first))
}

// gone takes a waiter whose wait has ended with err out of its line, and returns how the wait
// ended.
func (l *Lines) gone(w Waiting, me *waiter, err error) error {
	if !l.leave(me) {
		return err
	}
	l.client.Telemetry.Woken(w.Kind, telemetry.WokenTurn)
	return nil // even if it gave up in the same moment
}

// waitInLine is Wait for a waiter that has its place in the line.
func (l *Lines) waitInLine(ctx context.Context, w Waiting, me *waiter, first Verdict) error {
	if !me.leads() {
		first = Verdict{} // too old to rely on by the time it leads
	}
	for {
		stage, err := me.await(ctx, l.client.Closing)
		switch {
		case err != nil:
			return busy(err)
		case stage == granted:
			return nil
		case stage == leading:
			return l.waitAsHead(ctx, w, me, first)
		}
		w.Ticket.Follows = l.follows(me)
		v, err := l.try(ctx, w)
		if err != nil || v.Granted {
			return err
		}
	}
}

// waitAsHead is Wait for the head of a line, which may have tried once already.
func (l *Lines) waitAsHead(ctx context.Context, w Waiting, me *waiter, first Verdict) error {
	sub, quiet := l.lead(w, me, first)
	if sub == nil {
		return nil // the thing was passed to it already
	}
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	if w.Weight > 0 {
		defer l.overtaking.arrive(w, me.since)()
	}
	for {
		reason, err := l.park(ctx, me, sub, timer)
		if err == nil {
			err = l.giveWay(ctx, w)
		}
		if err != nil {
			return busy(err)
		}
		if l.handed(me, sub.Last()) {
			l.client.Telemetry.Woken(w.Kind, reason)
			l.afterGrant(w, me, Verdict{Granted: true, For: time.Until(w.Ticket.Kept.Add(w.Ticket.Lasts))})
			return nil
		}
		if rest := l.rest(me, reason); rest > 0 {
			timer.Reset(rest)
			continue
		}
		if !l.ask(me) {
			return nil
		}
		l.client.Telemetry.Woken(w.Kind, reason)
		more := l.gather(me)
		v, err := l.try(ctx, w)
		l.answered(me, v, err)
		if err != nil {
			return err
		}
		nudged := l.nudge(me)
		if reason == telemetry.WokenTimer && quiet > 0 && (v.Granted || nudged) {
			sub.Suspect() // a message should have come first, unless a lease was over
		}
		if v.Granted {
			l.afterGrant(w, me, v)
			return nil
		}
		if more {
			v.For = 0
		}
		quiet = nap(v.For)
		timer.Reset(quiet)
	}
}

// lead has the head listen for its line, and returns for how long the head need not ask. The
// subscription is nil if the thing has been passed to the head. While the head subscribes, nothing
// is passed to it, so that no other waiter becomes the head.
func (l *Lines) lead(w Waiting, me *waiter, first Verdict) (*pubsub.Subscription, time.Duration) {
	l, q := l, me.line
	l.mu.Lock()
	if me.out {
		l.mu.Unlock()
		return nil, 0
	}
	sub, quiet := q.sub, me.quiet(first)
	if me.asking = sub == nil; me.ticket != nil && me.ticket.Terms != (Terms{}) {
		me.passed = make(chan struct{}, 1)
	}
	l.mu.Unlock()
	if sub != nil {
		return sub, quiet
	}
	sub = l.client.Subscriptions.Subscribe(w.channels()...)
	l.mu.Lock()
	defer l.mu.Unlock()
	q.sub, me.asking = sub, false
	return sub, quiet
}

func (w *Waiting) channels() []string {
	if w.Told == nil {
		return []string{w.Channel}
	}
	return w.Told.Channels()
}

// brief is how long a try may go unanswered without the error saying so, if ctx ends in the middle
// of it.
const brief = 100 * time.Millisecond

// try is w.Try for a waiter that has been told before that the thing is held.
func (l *Lines) try(ctx context.Context, w Waiting) (Verdict, error) {
	asked := time.Now()
	v, err := w.Try(ctx)
	switch {
	case err == nil || ctx.Err() == nil || errors.Is(err, errs.Busy):
		return v, err
	case errors.Is(err, errs.Unavailable) && time.Since(asked) < brief:
		return v, busy(ctx.Err())
	default:
		return v, busy(err)
	}
}

// afterGrant tells the waiters behind the head what its grant means for them.
func (l *Lines) afterGrant(w Waiting, me *waiter, v Verdict) {
	switch w.Grant {
	case Exclusive:
		me.line.heldUntil = time.Now().Add(v.For)
	case Common:
		l.grantAll(me.line)
	case Shared:
	}
}

// park waits until something may have changed, and returns what woke it; or the error that ends the
// wait.
func (l *Lines) park(ctx context.Context, me *waiter, sub *pubsub.Subscription, timer *time.Timer) (reason string, err error) {
	select {
	case <-sub.C():
		return telemetry.WokenMessage, nil
	case <-timer.C:
		return telemetry.WokenTimer, nil
	case <-me.passed:
		return "", nil
	case <-ctx.Done():
		return "", ctx.Err()
	case <-l.client.Closing.Done():
		return "", context.Cause(l.client.Closing)
	}
}

// nap returns how long to sleep if the present grant lasts for left; a negative left has no end. It
// is PollBound at the most, less a random tenth of it at the most so that processes spread out. It
// is a millisecond at the least, so that waiting does not become constant asking.
func nap(left time.Duration) time.Duration {
	poll := PollBound - rand.N(PollBound/10)
	if left < 0 || left > poll {
		return poll
	}
	return max(left, time.Millisecond)
}

// busy adds to end, the reason why a wait ended, that the thing was held. It leaves errs.Closed as
// it is.
func busy(end error) error {
	if errors.Is(end, errs.Closed) {
		return end
	}
	return fmt.Errorf("%w: %w", errs.Busy, end)
}
