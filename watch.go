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

// Happening says what has happened in an Event.
type Happening string

// The Happenings. The fields that they name are fields of Event.
const (
	// EventLooked: Watch has looked at all names once. Now is everything that Watch has found. If some
	// names, or all, could not be looked at, Err says why.
	EventLooked Happening = "looked"
	// EventGranted: the holder in Holder now holds what is at the name: a lock, a permit or another thing.
	EventGranted Happening = "granted"
	// EventReleased: the holder in From no longer holds the name, although its lease had time left. Nothing
	// shows that Redis has dropped the hold. The holder may have released it, or somebody may have released
	// it by force.
	EventReleased Happening = "released"
	// EventExpired: the holder in From no longer holds the name, because its lease ran out: the lease was
	// neither renewed nor released.
	EventExpired Happening = "expired"
	// EventLost: the holder in From no longer holds the name, although its lease had time left. No release
	// was announced, and since the last look Redis has evicted keys or has restarted. Even so, the holder
	// may have released its lease.
	EventLost Happening = "lost"
	// EventPassed: the holder in Holder now holds the name in place of the holder in From. Either the lock
	// was handed over, or it was released and granted between two looks.
	EventPassed Happening = "passed"
	// EventUnseen: messages announced the release of holds that no look of the Watch has seen. Times is the
	// number of these releases.
	EventUnseen Happening = "unseen"
	// EventWaits: the waiter in Waiter has begun to wait at the name.
	EventWaits Happening = "waits"
	// EventCounted: the count has changed from Was to Value, or the total All has changed.
	EventCounted Happening = "counted"
	// EventDone and EventFailed: the work of a key of a Once has ended, with a result or with an error. The
	// holder in From has done the work. From is zero if no look saw the work under way.
	EventDone   Happening = "done"
	EventFailed Happening = "failed"
	// EventTripped and EventBroken: a generation of a barrier has ended, because all parties have come, or
	// because the generation has broken.
	EventTripped Happening = "tripped"
	EventBroken  Happening = "broken"
)

// Event is one thing that has happened at a name between two looks of a Watch, as far as the difference
// between the two looks shows. More may have happened between them.
type Event struct {
	What Happening
	// Name is the name as it is in Redis, without the prefix of WithKeyPrefix. It is "" for EventLooked.
	Name string
	Kind Kind      // of what is there now, or else was there before
	At   time.Time // when it was seen, on the server's clock; for EventLooked, on this process's

	// Holder holds the name now, and From held it before. A field is zero if the comment of the Happening
	// does not mention that field.
	Holder, From Holder
	Waiter       Waiter

	// Times is the number of releases that an EventUnseen reports.
	Times int

	// Value is the new count, and Was is the earlier count. What is counted depends on Kind: a latch, the
	// free permits of a semaphore, the parties that have come to a barrier, or all permits of a
	// PermitSemaphore. All is the total, if it is known.
	Value, Was, All int64

	// Now is what an EventLooked has found, sorted by name. For a name that could not be looked at, Now has
	// what was there before. The slice is shared: do not change it.
	Now []Inspection
	// Err says why the look of an EventLooked has failed, for some names or for all. Otherwise Err is nil.
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

// WatchOption configures one call of Watch.
type WatchOption func(*looker)

// WatchEvery sets the time from one look to the next. The default is 1 s. If d is less than 100 ms, Watch
// uses 100 ms. If d is 0 or negative, the Watch ends with ErrBadArgument.
func WatchEvery(d time.Duration) WatchOption { return func(l *looker) { l.every = d } }

// Watch returns what happens at the names that match the pattern: grants, releases, losses, hand-overs,
// waiters and counts, whoever causes them, also Java programs. The pattern has the syntax of Redis's SCAN,
// and is compared with the names as they are in Redis. The pattern "" matches all names.
//
// Watch looks at the names again and again, on the goroutine that ranges over the sequence. It only reads.
// Each look yields its events, in the order of their names, and then an EventLooked with everything that is
// there. The first look yields only the EventLooked. Watch does not see a hold that begins and ends between
// two looks. But if the pattern is one name without wildcards, Watch also hears the message of each
// release: the message makes the next look come earlier, and Watch counts the releases of holds that no
// look has found (EventUnseen). In a cluster with sharded channels, Watch hears no messages. If the body of
// the loop is slow, the looks become rarer, and events do not pile up.
//
// The sequence ends when ctx ends. It also ends if more looks make no sense, because of ErrDenied,
// ErrBadArgument or ErrClosed: then the last event is an EventLooked with that error in Err. Any other
// error, such as ErrUnavailable after 5 s without an answer, is in the Err of its look. Then the next look
// reports what has happened since the last successful look.
//
// docs/inspect.md says what Watch costs, and which events it cannot distinguish.
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
	shortest          = 100 * time.Millisecond // at least, from a look to one that a message causes
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

// rest waits until the next regular look is due, and returns true; or until a message says that something has
// happened, or ctx ends. A look that a message causes does not put off the next regular one: else no look would ever fall
// into the holds of a lock that is released once a period.
func rest(ctx context.Context, due time.Time, wake <-chan struct{}) (regular bool) {
	ends, begins := time.NewTimer(time.Until(due)), time.NewTimer(shortest)
	defer ends.Stop()
	defer begins.Stop()
	var heard <-chan struct{}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ends.C:
			return true
		case <-begins.C:
			heard = wake
		case <-heard:
			return false
		}
	}
}
