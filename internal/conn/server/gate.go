// The gate: it limits how often one server is dialled, however many callers wait for it.

package server

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// firstRest is the longest pause before the first dial after a failure. Each further failure
	// makes it four times as long, up to maxRest.
	firstRest = 50 * time.Millisecond
	// maxRest keeps a process at some ten dials in ten seconds to a server that is out of
	// reach, and lets it find soon that the server is back.
	maxRest = 1200 * time.Millisecond
)

// gate is shared by all connections of a Manager to one server. While the server is well, it is
// dialled at once. After a failure one dial is made at a time, each after a random pause whose bound
// grows: so the processes that wait for a server spread out, and the callers in one process wait for
// the same dial. If a server is given long for a reply, a dial to it may take long too, but it holds
// up the next dial no longer than usual.
//
// A connection counts as good once a request on it was answered, unless with LOADING or the like: a
// server that accepts connections but does not serve them has failed too.
type gate struct {
	// era counts the failures of connections that were in use. A connection of an earlier era
	// may lead to a server that was the master and, once thawed, still takes itself for it.
	era      atomic.Int64
	pace     *Pace
	events   *Events     // nil if nobody hears of them
	doubtful atomic.Bool // the next connection may lead to a server that has forgotten, or to another one

	mu       sync.Mutex // guards what follows
	failures int
	unproven int           // connections in a row that were closed before they served anything
	since    time.Time     // when the last failure was seen, or when the last trial ended
	trial    chan struct{} // closed when the last dial after a failure has ended; nil if there is none
	begun    time.Time     // when that dial began, or will
	well     chan struct{} // closed when a connection was found good
}

// pass is the permission to dial once.
type pass struct {
	failures int // how many failures had been seen when it was given
	trial    chan struct{}
}

// newGate returns the gate of a server which the program gives that long for a reply.
func newGate(most time.Duration) *gate {
	return &gate{pace: NewPace(most), well: make(chan struct{})}
}

// enter waits until the server may be dialled. If it returns no error, the caller must call
// leave.
func (g *gate) enter(ctx context.Context) (pass, error) {
	for {
		g.mu.Lock()
		if g.failures == 0 {
			g.mu.Unlock()
			return pass{}, nil
		}
		wait, next := g.trial, g.pace.least-time.Since(g.begun)
		if wait == nil || next <= 0 {
			p := pass{failures: g.failures, trial: make(chan struct{})}
			rest, well := time.Until(g.since.Add(pauseAfter(g.failures))), g.well
			g.trial, g.begun = p.trial, time.Now().Add(max(rest, 0))
			g.mu.Unlock()
			if err := waitFor(ctx, well, rest); err != nil {
				g.leave(p, false)
				return pass{}, err
			}
			return p, nil
		}
		g.mu.Unlock()
		if err := waitFor(ctx, wait, next); err != nil {
			return pass{}, err
		}
	}
}

// leave records the outcome of the dial. Of dials that began together only one failure counts. If
// the server had failed before, the next dial pauses even if this one has succeeded: until a
// request on the new connection is answered, or for as long as after a failure.
func (g *gate) leave(p pass, failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.trial != nil {
		close(p.trial)
		if g.since = time.Now(); g.trial == p.trial {
			g.trial = nil
		}
	}
	if failed && g.failures == p.failures {
		g.failures++
		g.since = time.Now()
	}
}

// hurry lets the next dial go without a pause.
func (g *gate) hurry() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since = time.Time{}
}

// fail records that the server could be dialled but does not serve. After the first such
// failure the server is dialled again at once, unless it was silent: then all processes have
// noticed that at the same instant, and must spread out.
func (g *gate) fail(silent bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures++
	if g.since = time.Now(); g.failures == 1 && !silent {
		g.since = g.since.Add(-firstRest)
	}
}

// hungUp records that a connection was closed before it had served anything. One may be an accident; at the
// third in a row, something between accepts connections for a server that does not serve.
func (g *gate) hungUp() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unproven++; g.unproven >= 3 {
		g.failures++
		g.since = time.Now()
	}
}

// good records that the server has answered a request as a master does.
func (g *gate) good() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unproven = 0
	if g.failures > 0 {
		g.failures = 0
		close(g.well)
		g.well = make(chan struct{})
	}
}

// failing reports whether the last recorded event was a failure.
func (g *gate) failing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failures > 0
}

// pauseAfter returns how long to pause after that many failures in a row. At least half of the
// bound is certain, since short pauses would only add dials.
func pauseAfter(failures int) time.Duration {
	bound := firstRest
	for ; failures > 1 && bound < maxRest; failures-- {
		bound *= 4
	}
	bound = min(bound, maxRest)
	return bound/2 + rand.N(bound/2)
}

// waitFor waits for d, or until early is closed. It returns ctx's error if ctx ends first.
func waitFor(ctx context.Context, early <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-ctx.Done():
	}
	return ctx.Err()
}
