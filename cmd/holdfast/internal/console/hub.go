// A hub: one Observer for all who look at the same thing.

package console

import (
	"cmp"
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

// moment is what a hub knows.
type moment struct {
	states []holdfast.Inspection // by name; shared: do not change them
	looked time.Time             // when, on this process's clock; zero if never
	ahead  time.Duration         // by how much the server's clock is ahead of this process's
	err    error                 // why the last look failed, wholly or for some names
	most   map[string]int64      // the greatest count seen of a latch
}

// clock returns the time on the server's clock.
func (m moment) clock() time.Time { return time.Now().Add(m.ahead) }

func newHub(name string, o *observe.Observer, p *past) *hub {
	return &hub{name: name, observer: o, past: p, viewers: make(map[chan struct{}]bool)}
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
	h.end, h.broken = cancel, true
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
			h.past.mark(h.name, unwatched, h.now.clock())
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
		h.take(ctx, observe.Change{Err: err, States: h.known().states})
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
	h.now.states, h.now.err = c.States, c.Err
	if c.Err == nil {
		h.now.looked = time.Now()
		if len(c.States) > 0 { // the latest was found just now
			h.now.ahead = time.Until(slices.MaxFunc(c.States, byAt).At)
		}
	}
	h.note(c, before)
	h.countMost()
	for v := range h.viewers {
		select {
		case v <- struct{}{}:
		default:
		}
	}
}

func byAt(a, b holdfast.Inspection) int { return a.At.Compare(b.At) }

// note adds to the past what has happened, and for which time somebody watched.
func (h *hub) note(c observe.Change, before moment) {
	begins := h.broken
	switch h.broken = c.Err != nil || c.Missed > 0; {
	case h.name == "" && !h.broken:
		h.past.watchedTo(h.now.clock(), begins)
	case h.name != "" && begins && !h.broken:
		h.past.mark(h.name, watched, h.now.clock())
		h.noteBegun()
	case h.name != "" && !begins && h.broken:
		h.past.mark(h.name, unwatched, h.now.clock())
	}
	for _, e := range c.Events {
		h.past.add(e, h.name != "", before.begun(e))
	}
}

// noteBegun adds to the past what had begun when the look at one name began: its hold, and its waits.
func (h *hub) noteBegun() {
	i, _ := h.now.find(h.name)
	e := observe.Event{What: observe.Granted, Name: i.Name, Kind: i.Kind, At: i.HeldSince}
	if len(i.Holders) == 1 && !i.HeldSince.IsZero() {
		e.Holder = i.Holders[0]
		h.past.add(e, true, time.Time{})
	}
	e = observe.Event{What: observe.Waits, Name: i.Name, Kind: i.Kind}
	for _, w := range i.Queue {
		if e.Waiter, e.At = w, w.Since; !w.Since.IsZero() {
			h.past.add(e, true, time.Time{})
		}
	}
}

// countMost keeps the greatest count of each latch, because Redis does not know how many it began with.
func (h *hub) countMost() {
	most := make(map[string]int64)
	for _, i := range h.now.states {
		if i.Kind == holdfast.KindLatch {
			most[i.Name] = max(i.Value, h.now.most[i.Name])
		}
	}
	h.now.most = most
}

// known returns what is known now.
func (h *hub) known() moment {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// begun returns since when the one who has held a thing alone had held it; zero if that is not known.
func (m moment) begun(e observe.Event) time.Time {
	i, found := m.find(e.Name)
	if !found || !slices.ContainsFunc(i.Holders, func(h holdfast.Holder) bool { return sameHolder(h, e.From) }) {
		return time.Time{}
	}
	return i.HeldSince
}

// find returns what stands at a name.
func (m moment) find(name string) (holdfast.Inspection, bool) {
	n, found := slices.BinarySearchFunc(m.states, name, func(i holdfast.Inspection, name string) int {
		return cmp.Compare(i.Name, name)
	})
	if !found {
		return holdfast.Inspection{Name: name, Kind: holdfast.KindFree, At: m.clock(), Waiters: -1}, false
	}
	return m.states[n], true
}
