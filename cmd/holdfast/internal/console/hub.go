// A hub: one Observer for all who look at the same thing.

package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/observe"
)

const (
	linger  = 3 * time.Second  // how long an Observer looks on after the last viewer has gone, who may be back at once
	retries = 10 * time.Second // how long to wait after an error that lasts
)

// hub looks while somebody views, and shares what it finds.
type hub struct {
	name     string // the one name that it looks at; "" if it looks at all
	observer *observe.Observer
	past     *past

	mu      sync.Mutex
	viewers map[chan struct{}]bool // each holds one signal: there is something new
	end     context.CancelFunc     // ends the looks; nil if there are none
	leaving *time.Timer
	running sync.WaitGroup
	broken  bool // the next look begins a new span of watching
	now     moment
}

func newHub(name string, o *observe.Observer, p *past) *hub {
	return &hub{name: name, observer: o, past: p, viewers: make(map[chan struct{}]bool), now: moment{how: unknown}}
}

// join returns a channel that holds a signal whenever there is something new, and a function to leave.
func (h *hub) join() (news <-chan struct{}, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	me := make(chan struct{}, 1)
	h.viewers[me] = true
	if h.leaving != nil {
		h.leaving.Stop()
		h.leaving = nil
	}
	if h.end == nil {
		h.begin()
	}
	if !h.now.looked.IsZero() {
		me <- struct{}{}
	}
	return me, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.viewers, me)
		if len(h.viewers) == 0 && h.end != nil {
			h.leaving = time.AfterFunc(linger, h.restIfAlone)
		}
	}
}

// begin starts the looks.
func (h *hub) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	h.end, h.broken, h.now = cancel, true, h.now.resumed()
	if h.name != "" {
		h.past.watchOwn(h.name, true)
	}
	h.running.Go(func() { h.follow(ctx) })
}

// restIfAlone ends the looks if nobody views.
func (h *hub) restIfAlone() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.viewers) == 0 {
		h.rest()
	}
}

// rest ends the looks.
func (h *hub) rest() {
	if h.end == nil {
		return
	}
	h.end()
	h.end = nil
	if h.name != "" {
		if !h.broken {
			h.past.mark(h.name, unwatched, h.now.seenAt())
		}
		h.past.watchOwn(h.name, false)
	}
}

// idle reports whether nobody looks.
func (h *hub) idle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.end == nil && len(h.viewers) == 0
}

// learn takes over what another hub knows of its name, if that is newer and nobody looks here.
func (h *hub) learn(from moment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end != nil {
		return
	}
	if m, found := from.only(h.name); found && m.looked.After(h.now.looked) {
		h.now = m
	}
}

// close ends the looks, and waits for their end.
func (h *hub) close() {
	h.mu.Lock()
	if h.leaving != nil {
		h.leaving.Stop()
	}
	h.rest()
	h.mu.Unlock()
	h.running.Wait()
}

// follow takes what the Observer finds, until ctx ends. After an error that lasts, such as a right that is
// lacking, it tries again: somebody may have put it right.
func (h *hub) follow(ctx context.Context) {
	for {
		err := h.observer.Follow(ctx, func(c observe.Change) { h.take(ctx, c) })
		if ctx.Err() != nil {
			return
		}
		h.take(ctx, observe.Change{Err: err})
		pause := time.NewTimer(retries)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// take takes in what one look has found.
func (h *hub) take(ctx context.Context, c observe.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	before := h.now
	h.now = before.after(c)
	h.note(c, before)
	for v := range h.viewers {
		select {
		case v <- struct{}{}:
		default:
		}
	}
}

// note adds to the past what has happened, and for which time somebody watched. What the first look after a break
// finds has happened while nobody looked.
func (h *hub) note(c observe.Change, before moment) {
	begins := h.broken
	switch h.broken = c.Err != nil || c.Missed > 0; {
	case h.name == "" && !h.broken:
		h.past.watchedTo(h.now.seenAt(), begins)
	case h.name != "" && begins && !h.broken:
		h.past.mark(h.name, watched, h.now.seenAt())
		h.noteBegun()
	case h.name != "" && !begins && h.broken:
		h.past.mark(h.name, unwatched, before.seenAt())
	}
	events := c.Events
	if h.name != "" && begins && !h.broken && before.how != unknown {
		// The Observer has begun anew too, and compares with nothing. What it has reported all the same is kept once.
		was, _ := before.find(h.name)
		now, _ := h.now.find(h.name)
		events = append(slices.Clip(events), holdfast.Compare(was, now)...)
	}
	for _, e := range events {
		h.past.add(e, h.name != "", before.begun(e), begins)
	}
	if h.name != "" && !h.broken {
		h.noteGone(before, begins)
	}
}

// noteBegun adds to the past what had begun when the look at one name began: its holds, and its waits.
func (h *hub) noteBegun() {
	i, _ := h.now.find(h.name)
	for _, holder := range i.Holders[:min(shownOfOne, len(i.Holders))] {
		e := holdfast.Event{What: alreadyHeld, Name: i.Name, Kind: i.Kind, At: i.At, Holder: holder}
		if len(i.Holders) == 1 && !i.HeldSince.IsZero() {
			e.What, e.At = holdfast.EventGranted, i.HeldSince
		}
		h.past.add(e, true, time.Time{}, false)
	}
	e := holdfast.Event{What: holdfast.EventWaits, Name: i.Name, Kind: i.Kind}
	for _, w := range i.Queue {
		if e.Waiter, e.At = w, w.Since; !w.Since.IsZero() {
			h.past.add(e, true, time.Time{}, false)
		}
	}
}

// noteGone adds to the past who waits no longer, and does not hold the lock either.
func (h *hub) noteGone(before moment, late bool) {
	was, _ := before.find(h.name)
	i, _ := h.now.find(h.name)
	there := make(map[holdfast.Owner]bool)
	for _, w := range i.Queue {
		there[w.Owner] = true
	}
	for _, holder := range i.Holders {
		there[holder.Owner] = true
	}
	for _, w := range was.Queue {
		if !there[w.Owner] {
			e := holdfast.Event{What: noLongerWaits, Name: h.name, Kind: i.Kind, At: i.At, Waiter: w}
			h.past.add(e, true, time.Time{}, late)
		}
	}
}

// known returns what is known now.
func (h *hub) known() moment {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}
