// Package observe looks at what stands in Redis again and again, for as long as somebody follows, and finds
// out what has happened in between. It only reads. It is behind holdfast watch, and is made for a live screen
// and for a page that many look at: they share the looks.
//
// # What it costs
//
// Nothing while nobody follows. Otherwise, however many follow:
//
//   - one name: one or two commands for each look (Inspect), which comes once each period, and after a message
//     about the name, but never within 100 ms of the last: at most 20 commands a second. A lock that
//     more than some hundred readers hold costs more. A look that a message causes does not put off the next
//     regular one: else no look would ever fall into the holds of a lock that is released once a period;
//   - a pattern: each look is an InspectAll, which is a SCAN for every 512 keys of each type, one or two
//     commands for each name that stands, and two for each string that matches. Looks are put off so that no
//     more than 500 names a second are inspected on average, and so that Observer is at rest for four fifths
//     of the time.
//
// # Messages
//
// A release of a single name wakes the Observer by the message that the library publishes. For that it
// subscribes by PSUBSCRIBE: a plain subscription would count as a waiter that is no Client of Holdfast, and
// a release would then do more for it. A pattern is polled alone, since its messages would be one for each
// release in Redis. In a cluster messages go by SPUBLISH, which no pattern gets, so there it polls too.
// A release that is announced and that no look explains is an event of its own, Unseen: else nothing would be
// reported of holds that are shorter than the time between two looks. A lost message makes an event late, by one
// look, or leaves one of these out.
package observe

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// Options says what an Observer looks at, and how often.
type Options struct {
	// Pattern selects the names, as they stand in Redis, in the syntax of SCAN. The default is all names.
	Pattern string
	// Every is the time from one look to the next. The default is 1 s.
	Every time.Duration
	// Patience is after how long without any answer of Redis a look is given up. The default is 5 s.
	Patience time.Duration
}

// Change is what a look has found.
type Change struct {
	// States are what stands there, by name. They are shared: do not change them.
	States []holdfast.Inspection
	// Events are what has happened since the last Change.
	Events []Event
	// Missed is how many events were dropped, because this follower did not keep up.
	Missed int
	// Err is why the last look failed, wholly or for some names. The States of those names are old.
	Err error
}

// Observer looks while somebody follows.
type Observer struct {
	client  *holdfast.Client
	rdb     redis.UniversalClient
	space   keys.Space
	options Options

	mu  sync.Mutex
	now *watching // nil: nobody follows
}

// New returns an Observer. It does no I/O. It uses client for its looks, and rdb, which leads to the same
// Redis, for messages and for asking whether Redis still answers. space is what the client's keys begin with.
func New(client *holdfast.Client, rdb redis.UniversalClient, space keys.Space, o Options) *Observer {
	o.Every = cmp.Or(o.Every, time.Second)
	o.Patience = cmp.Or(o.Patience, 5*time.Second)
	return &Observer{client: client, rdb: rdb, space: space, options: o}
}

// Follow calls f, on the caller's goroutine, with what stands there now, and then with each Change, until ctx
// ends, or looking makes no sense: ErrDenied, ErrBadArgument, ErrClosed. It returns why. If f is slow, it gets
// several changes as one.
func (o *Observer) Follow(ctx context.Context, f func(Change)) error {
	w, me := o.join()
	defer o.leave(w, me)
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-me.news:
			f(w.take(me))
		case <-w.done:
			if len(me.news) > 0 {
				f(w.take(me))
			}
			return w.why
		}
	}
}

// watching is the time from the first follower to the last.
type watching struct {
	cancel context.CancelFunc
	done   chan struct{}
	why    error // why it ended; to be read when done is closed

	mu        sync.Mutex
	followers map[*follower]bool
	states    []holdfast.Inspection
	err       error // of the last look
	looked    bool
}

// follower is one call of Follow.
type follower struct {
	news   chan struct{} // holds one signal: something is to be taken
	events []Event
	missed int
}

// keeps is how many events are kept for a follower that does not take them.
const keeps = 10_000

func (o *Observer) join() (*watching, *follower) {
	me := &follower{news: make(chan struct{}, 1)}
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.now
	if w == nil || w.ended() {
		ctx, cancel := context.WithCancel(context.Background())
		w = &watching{cancel: cancel, done: make(chan struct{}), followers: make(map[*follower]bool)}
		o.now = w
		go func() {
			defer close(w.done)
			w.why = o.watch(ctx, w)
		}()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.followers[me] = true
	if w.looked {
		me.news <- struct{}{}
	}
	return w, me
}

func (w *watching) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// leave ends the looks after the last follower, and waits for their end.
func (o *Observer) leave(w *watching, me *follower) {
	o.mu.Lock()
	w.mu.Lock()
	delete(w.followers, me)
	last := len(w.followers) == 0
	w.mu.Unlock()
	if last && o.now == w {
		o.now = nil
	}
	o.mu.Unlock()
	if last {
		w.cancel()
		<-w.done
	}
}

// take returns what is new for a follower.
func (w *watching) take(me *follower) Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := Change{States: w.states, Events: me.events, Missed: me.missed, Err: w.err}
	me.events, me.missed = nil, 0
	return c
}

// tell tells all followers what a look has found.
func (w *watching) tell(states []holdfast.Inspection, events []Event, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states, w.err, w.looked = states, err, true
	for f := range w.followers {
		room := max(0, keeps-len(f.events))
		f.missed += max(0, len(events)-room)
		f.events = append(f.events, events[:min(room, len(events))]...)
		select {
		case f.news <- struct{}{}:
		default:
		}
	}
}

// watch looks until ctx ends, or looking makes no sense.
func (o *Observer) watch(ctx context.Context, w *watching) error {
	l := looker{Observer: o, states: make(map[string]holdfast.Inspection), ear: o.listen()}
	defer l.ear.stop()
	var due time.Time // when the next regular look is
	for regular := true; ; {
		began := time.Now()
		events, err := l.look(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.tell(l.sorted(), events, err)
		if lastingly(err) {
			return err
		}
		if regular {
			due = time.Now().Add(l.pause(time.Since(began)))
		}
		if regular = rest(ctx, due, l.ear.wake); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// lastingly reports whether another look would not help.
func lastingly(err error) bool {
	return errors.Is(err, holdfast.ErrDenied) || errors.Is(err, holdfast.ErrBadArgument) ||
		errors.Is(err, holdfast.ErrClosed)
}

const (
	perSecond = 500                    // at most, names inspected a second on average
	shortest  = 100 * time.Millisecond // between two looks, even if messages come
)

// rest waits until it is time for the next regular look, and returns true; or until a message says that something has
// happened, or ctx ends.
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

// Single returns the name that a pattern stands for, if it stands for one: if it has no wildcard.
func Single(pattern string) (name string, single bool) {
	unescaped := strings.NewReplacer(`\*`, "", `\?`, "", `\[`, "", `\\`, "").Replace(pattern)
	if pattern == "" || strings.ContainsAny(unescaped, `*?[\`) {
		return "", false
	}
	return strings.NewReplacer(`\*`, "*", `\?`, "?", `\[`, "[", `\\`, `\`).Replace(pattern), true
}

// Literal returns the pattern that stands for one name, or one channel, whatever bytes it has.
func Literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// sorted returns the states by name.
func (l *looker) sorted() []holdfast.Inspection {
	return slices.SortedFunc(maps.Values(l.states), func(a, b holdfast.Inspection) int {
		return cmp.Compare(a.Name, b.Name)
	})
}
