// Package observe lets many follow one Watch, such as a live screen, or a page that many look at: they share the looks.
// It costs nothing while nobody follows; otherwise what one Watch costs, however many follow.
package observe

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/inspect"
)

// Options says what an Observer looks at, and how often.
type Options struct {
	// Pattern selects the names, as Watch does. The default is all names.
	Pattern string
	// Every is the time from one look to the next. The default is 1 s.
	Every time.Duration
	// Patience is after how long without any answer of Redis a look is given up. The default is 5 s.
	Patience time.Duration
}

// Change is what a look has found.
type Change struct {
	// States are what is there, by name. They are shared: do not change them.
	States []holdfast.Inspection
	// Events are what has happened since the last Change.
	Events []holdfast.Event
	// Missed is how many events were dropped, because this follower did not keep up.
	Missed int
	// Err is why the last look failed, wholly or for some names. The States of those names are old.
	Err error
}

// Observer looks while somebody follows.
type Observer struct {
	client  *holdfast.Client
	options Options

	mu  sync.Mutex
	now *watching // nil: nobody follows
}

// New returns an Observer that looks with client. It does no I/O.
func New(client *holdfast.Client, o Options) *Observer {
	o.Every = cmp.Or(o.Every, time.Second)
	o.Patience = cmp.Or(o.Patience, 5*time.Second)
	return &Observer{client: client, options: o}
}

// Follow calls f, on the caller's goroutine, with what is there now, and then with each Change, until ctx ends, or
// looking makes no sense: ErrDenied, ErrBadArgument, ErrClosed. It returns why. If f is slow, it gets several changes
// as one.
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
	events []holdfast.Event
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
func (w *watching) tell(states []holdfast.Inspection, events []holdfast.Event, err error) {
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
	ctx = inspect.WithPatience(ctx, o.options.Patience)
	var events []holdfast.Event
	var last error
	for e := range o.client.Watch(ctx, o.options.Pattern, holdfast.WatchEvery(o.options.Every)) {
		if e.What != holdfast.EventLooked {
			events = append(events, e)
			continue
		}
		w.tell(e.Now, events, e.Err)
		events, last = nil, e.Err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return last
}
