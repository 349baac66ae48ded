// How a lane gets its wires, and which of them it gives up.

package conn

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"
)

// errRetired is the error of a lane whose server no longer has any slots.
var errRetired = errors.New("the server has left the cluster")

// reach starts the making of a wire if requests wait, there is room for another wire, and no
// existing wire is about to come free. While the server is well, a wire is made for each
// request that waits: if they all shared one, a lost reply would be lost to all of them.
func (l *lane) reach() {
	if len(l.queue) == 0 || l.closed || l.busy < len(l.wires) || len(l.wires)+l.connecting >= maxWires {
		return
	}
	atOnce := 1
	if !l.gate.failing() {
		atOnce = min(len(l.queue), maxWires)
	}
	if l.connecting > atOnce || l.connecting == atOnce && time.Since(l.begun) < slow {
		return
	}
	l.connecting++
	l.begun = time.Now()
	l.workers.Go(l.open)
}

// open makes a wire and sends the queued requests on it. If it cannot make one, the other wires
// serve the queue; if there are none, the queued requests fail with the error.
func (l *lane) open() {
	w, err := l.dial()
	l.mu.Lock()
	l.connecting--
	var refused []*request
	switch {
	case err == nil && l.closed:
		err = net.ErrClosed
	case err == nil:
		l.wires = append(l.wires, w)
	case len(l.wires) == 0:
		refused = l.takeQueue()
	}
	l.mu.Unlock()
	failAll(refused, unreached{err})
	switch {
	case err == nil:
		l.flush(w)
	case w != nil:
		w.end()
	}
}

// dial makes a wire when the gate allows it. If a new era began while the wire was being made,
// dial makes another.
func (l *lane) dial() (*wire, error) {
	for {
		p, err := l.gate.enter(l.life)
		if err != nil {
			return nil, err
		}
		w, err := l.connect(l.life)
		l.gate.leave(p, err != nil && l.life.Err() == nil)
		if err != nil || l.current(w) {
			return w, err
		}
		w.end()
	}
}

// doubt makes sure that every connection that was made up to now is dropped before it is used
// again.
func (l *lane) doubt() {
	l.gate.era.Add(1)
	l.discard()
}

// loss is how a wire in use has failed.
type loss int

const (
	hungUp   loss = iota // the other end has closed the connection
	unserved             // the server does not answer as a master does
	silent               // the server is silent
)

// lost records that a wire of the lane has failed. The other wires may lead to a server that
// was the master and, once thawed, still takes itself for it, so they are dropped. Only the
// first loss of an era counts: after it all wires of that era are being dropped.
func (l *lane) lost(w *wire, how loss) {
	if !l.gate.era.CompareAndSwap(w.era, w.era+1) {
		return
	}
	if how != hungUp {
		l.gate.fail(how == silent)
	}
	l.discard()
}

// discard ends the idle wires of earlier eras on all lanes of the server. Wires in use end when
// they are given back.
func (l *lane) discard() {
	for _, each := range l.siblings() {
		each.endIdle(func(w *wire) bool { return !each.current(w) })
	}
}

// sweep ends the idle wires that were last used longer ago than the user allows, and those that
// are older than the user allows.
func (l *lane) sweep(now time.Time) {
	limit := l.options.ConnMaxIdleTime
	for _, each := range l.siblings() {
		each.endIdle(func(w *wire) bool {
			return !each.current(w) || limit > 0 && now.Sub(w.since) >= limit
		})
	}
}

// endIdle ends the idle wires for which which reports true.
func (l *lane) endIdle(which func(*wire) bool) {
	l.mu.Lock()
	var ended []*wire
	for _, w := range l.free {
		if which(w) {
			ended = append(ended, w)
		}
	}
	l.free = slices.DeleteFunc(l.free, func(w *wire) bool { return slices.Contains(ended, w) })
	l.wires = slices.DeleteFunc(l.wires, func(w *wire) bool { return slices.Contains(ended, w) })
	if w := l.renewals.idle; w != nil && which(w) {
		ended = append(ended, l.renewals.takeIdle()...)
	}
	l.reach()
	l.mu.Unlock()
	for _, w := range ended {
		w.end()
	}
}

// retire gives the lane up if nothing is on it, and reports whether it did. A caller that still
// has the lane is sent to look for the server again.
func (l *lane) retire() bool {
	for _, each := range l.siblings() {
		each.endIdle(func(*wire) bool { return true })
	}
	for _, each := range l.siblings() {
		each.mu.Lock()
		busy := len(each.queue) > 0 || len(each.wires) > 0 || each.connecting > 0 ||
			each.renewals.used != nil || each.renewals.making > 0
		each.retired = !busy
		each.mu.Unlock()
		if busy {
			return false
		}
	}
	return true
}

// siblings returns all lanes to the server.
func (l *lane) siblings() []*lane {
	if l.main != nil {
		l = l.main
	}
	return []*lane{l, l.replicated}
}

// private is a connection with one user at a time.
type private struct {
	idle    *wire
	used    *wire         // the connection while it is in use
	making  int           // how many are being made
	begun   time.Time     // when the last of these was
	changed chan struct{} // closed when the making of one has ended
	err     error         // the error of the last one; nil if it succeeded
}

// takeIdle returns the connection if it is idle.
func (p *private) takeIdle() []*wire {
	if p.idle == nil {
		return nil
	}
	w := p.idle
	p.idle = nil
	return []*wire{w}
}

// errNotYet says that the connection for renewals is still being made, while a connection of
// the callers works.
var errNotYet = errors.New("still connecting")

// takeRenewals returns the connection for renewals. If there is none, it has one made and waits
// for it until ctx ends. If a connection of the callers works, it does not wait longer than
// slow, and not at all while the server fails; then it returns errNotYet. A connection that is
// still being made is there for the next try.
func (l *lane) takeRenewals(ctx context.Context) (*wire, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &l.renewals
	for {
		if l.closed {
			return nil, net.ErrClosed
		}
		if l.retired {
			return nil, errRetired
		}
		if w := p.takeIdle(); w != nil {
			if l.current(w[0]) {
				p.used = w[0]
				return w[0], nil
			}
			l.workers.Go(w[0].end)
		}
		if p.making == 0 || p.making == 1 && time.Since(p.begun) >= slow {
			p.making++
			p.begun = time.Now()
			if p.changed == nil {
				p.changed = make(chan struct{})
			}
			l.workers.Go(l.openRenewals)
		}
		if l.gate.failing() && l.works() {
			return nil, errNotYet
		}
		changed := p.changed
		l.mu.Unlock()
		late := !closedWithin(ctx, changed, slow)
		l.mu.Lock()
		switch {
		case p.idle != nil:
		case late && ctx.Err() == nil && l.works():
			return nil, errNotYet
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case p.err != nil:
			return nil, p.err
		}
	}
}

// works reports whether callers have a connection that works.
func (l *lane) works() bool { return slices.ContainsFunc(l.wires, l.current) }

// closedWithin waits until c is closed. It reports false if d passes or ctx ends first.
func closedWithin(ctx context.Context, c <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// openRenewals makes the connection for renewals.
func (l *lane) openRenewals() {
	w, err := l.dial()
	l.mu.Lock()
	p := &l.renewals
	p.making--
	p.err = err
	spare := w
	if err == nil && !l.closed && p.idle == nil {
		p.idle, spare = w, nil
	}
	close(p.changed)
	p.changed = nil
	if p.making > 0 {
		p.changed = make(chan struct{})
	}
	l.mu.Unlock()
	if spare != nil {
		spare.end()
	}
}

// giveRenewals gives the connection for renewals back.
func (l *lane) giveRenewals(w *wire) {
	l.mu.Lock()
	spare := w
	l.renewals.used = nil
	if l.current(w) && !l.closed && l.renewals.idle == nil {
		l.renewals.idle, spare = w, nil
	}
	l.mu.Unlock()
	if spare != nil {
		spare.end()
	}
}
