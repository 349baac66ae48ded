// Watch: what happens at names, as it happens.

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/inspect"
)

// Happening is what an Event is about.
type Happening string

// What happens. "It" is what is held at the name. "Before its time" means while the hold still had time left after
// its last renewal.
const (
	// EventLooked: a look has ended. Now is all that is there; Err says why some or all of it could not be looked
	// at.
	EventLooked Happening = "looked"
	// EventGranted: Holder has it now.
	EventGranted Happening = "granted"
	// EventReleased: From no longer has it, before its time, and nothing says that Redis has dropped it. It may have
	// been released by force.
	EventReleased Happening = "released"
	// EventExpired: From no longer has it, and its time was over: it was neither renewed nor released.
	EventExpired Happening = "expired"
	// EventLost: From no longer has it, before its time; no release was announced, and since the last look Redis has
	// evicted keys or begun anew. Even so it may have been released.
	EventLost Happening = "lost"
	// EventPassed: Holder has it now in place of From: a hand-over, or a release and a grant.
	EventPassed Happening = "passed"
	// EventUnseen: releases were announced of holds that no look has found; Times says how many.
	EventUnseen Happening = "unseen"
	// EventWaits: Waiter has come.
	EventWaits Happening = "waits"
	// EventCounted: the count was Was and is Value now, or All has changed.
	EventCounted Happening = "counted"
	// EventDone and EventFailed: the work of a key of a Once has ended. From did it; From is zero if no look saw
	// the work under way.
	EventDone   Happening = "done"
	EventFailed Happening = "failed"
	// EventTripped and EventBroken: a generation of a barrier has ended.
	EventTripped Happening = "tripped"
	EventBroken  Happening = "broken"
)

// Event is one thing that has happened at a name, as far as two looks at the name show. Between the looks more may
// have happened.
type Event struct {
	What Happening
	// Name is the name as it is in Redis, without the prefix of WithKeyPrefix; "" for EventLooked.
	Name string
	Kind Kind      // of what is there now, or else was there before
	At   time.Time // when it was seen, on the server's clock; for EventLooked, on this process's

	// Holder has it now, From had it. Each is zero where the Happening does not name it.
	Holder, From Holder
	Waiter       Waiter

	// Times is how many releases an EventUnseen is about.
	Times int

	// Value is the new count: of a latch, of a semaphore's free permits, of a barrier's parties that have come, or of
	// all permits of a PermitSemaphore. Was is the earlier count. All is the total, where that is known.
	Value, Was, All int64

	// Now is what an EventLooked has found, sorted by name; for a name that could not be looked at, what was there
	// before. It is shared: do not change it.
	Now []Inspection
	// Err is why the look of an EventLooked has failed, for all names or for some; otherwise nil.
	Err error
}

// String returns the event as one line, with shortened owners.
func (e Event) String() string {
	switch e.What {
	case EventLooked:
		if e.Err != nil {
			return "looked: " + e.Err.Error()
		}
		return fmt.Sprintf("looked: %d names", len(e.Now))
	case EventUnseen:
		return fmt.Sprintf("%s: released %d times, not seen", errs.Quote(e.Name), e.Times)
	case EventWaits:
		return fmt.Sprintf("%s: waited for by %v", errs.Quote(e.Name), e.Waiter)
	case EventCounted:
		return fmt.Sprintf("%s: %d, was %d", errs.Quote(e.Name), e.Value, e.Was)
	}
	text := errs.Quote(e.Name) + ": " + string(e.What)
	if e.From != (Holder{}) {
		text += fmt.Sprintf(", from %v", e.From)
	}
	if e.Holder != (Holder{}) {
		text += fmt.Sprintf(", to %v", e.Holder)
	}
	return text
}

// WatchOption configures one Watch.
type WatchOption func(*looker)

// WatchEvery sets the time from one look to the next. The default is 1 s; less than 100 ms counts as 100 ms. If d is 0
// or less, the Watch ends with ErrBadArgument.
func WatchEvery(d time.Duration) WatchOption { return func(l *looker) { l.every = d } }

// Watch returns what happens at the names that match the pattern: grants, releases, losses, hand-overs, waiters and
// counts, whoever causes them, and Java too. The pattern has the syntax of Redis's SCAN, and is compared with names as
// InspectAll does; "" matches all.
//
// Watch looks again and again, on the goroutine that ranges over it, and only reads. Each look yields its events, in
// the order of their names, and then an EventLooked with all that is there; the first look yields only the EventLooked.
// Watch does not see what begins and ends between two looks. For a single name, without wildcards, it counts the
// releases of such holds (EventUnseen), and the message of a release brings the next look forward; where channels are
// sharded (in a cluster), it hears no message. A slow loop makes the looks rarer; events do not pile up.
//
// The sequence ends when ctx ends. It also ends, after an EventLooked with the reason as its Err, if looking makes no sense
// any more: ErrDenied, ErrBadArgument or ErrClosed. Any other error, such as ErrUnavailable after 5 s without an
// answer, is in the Err of its look, and the next look reports what has happened meanwhile.
//
// docs/inspect.md says what Watch costs, and what it can tell apart.
func (c *Client) Watch(ctx context.Context, pattern string, options ...WatchOption) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		l := looker{Client: c, pattern: pattern, every: defaultWatchEvery, states: make(map[string]Inspection), ear: inspect.Deaf()}
		l.name, l.single = inspect.Single(pattern)
		for _, o := range options {
			if o != nil {
				o(&l)
			}
		}
		if err := l.usable(); err != nil {
			yield(Event{What: EventLooked, At: time.Now(), Err: errs.Wrap("watch", err)})
			return
		}
		closing, cancel := c.untilClosed(ctx)
		defer cancel()
		defer l.close()
		if l.watch(closing, yield) && errors.Is(context.Cause(closing), ErrClosed) {
			yield(Event{What: EventLooked, At: time.Now(), Now: l.sorted(), Err: errs.Wrap("watch", ErrClosed)})
		}
	}
}

func (l *looker) usable() error {
	if err := l.engine.Broken(); err != nil {
		return err
	}
	if l.every <= 0 {
		return fmt.Errorf("a look every %v: %w", l.every, ErrBadArgument)
	}
	return nil
}

const (
	defaultWatchEvery = time.Second
	perSecond         = 500                    // at most, names inspected a second on average
	shortest          = 100 * time.Millisecond // between two looks, even if messages come
)

// watch looks until ctx ends, and then returns true; or until looking makes no sense, or nobody takes what it finds.
func (l *looker) watch(ctx context.Context, yield func(Event) bool) bool {
	var due time.Time // when the next regular look is
	for regular := true; ctx.Err() == nil; regular = rest(ctx, due, l.ear.Wake) {
		began := time.Now()
		events, err := l.look(ctx)
		took := time.Since(began)
		if end, ends := ctx.Deadline(); ctx.Err() != nil || ends && !time.Now().Before(end) {
			break // its end may be the reason of an error before it is noticed
		}
		for _, e := range events {
			if !yield(e) {
				return false
			}
		}
		if !yield(Event{What: EventLooked, At: time.Now(), Now: l.sorted(), Err: err}) || err != nil && lastingly(err) {
			return false
		}
		if regular {
			due = began.Add(took + l.pause(took))
		}
	}
	return true
}

// rest waits until it is time for the next regular look, and returns true; or until a message says that something has
// happened, or ctx ends. A look that a message causes does not put off the next regular one: else no look would ever fall
// into the holds of a lock that is released once a period.
func rest(ctx context.Context, due time.Time, wake <-chan struct{}) (regular bool) {
	timer := time.NewTimer(shortest)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	}
	left := time.Until(due)
	if left <= 0 {
		return true
	}
	timer.Reset(left)
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-wake:
		return false
	}
}
