// How a node gets its wires, and which of them it gives up.

package server

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn/fault"
)

// reach starts the making of a wire if requests wait, there is room for another wire, and no
// existing wire is about to come free. While the server is well, a wire is made for each
// request that waits: if they all shared one, a lost reply would be lost to all of them.
func (n *Node) reach() {
	if len(n.queue) == 0 || n.closed || n.busy < len(n.wires) || len(n.wires)+n.connecting >= maxWires {
		return
	}
	atOnce := 1
	if !n.gate.failing() {
		atOnce = min(len(n.queue), maxWires)
	}
	took := time.Since(n.begun)
	if n.connecting > atOnce && took < n.gate.pace.least || n.connecting == atOnce && took < slow {
		return
	}
	n.connecting++
	n.begun = time.Now()
	n.workers.Go(n.open)
}

// open makes a wire and sends the queued requests on it. If it cannot make one, the other wires
// serve the queue; if there are none, the queued requests fail with the error.
func (n *Node) open() {
	// If it takes long, another one is begun beside it, whether more requests come or not.
	another := time.AfterFunc(n.gate.pace.least, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.reach()
	})
	w, err := n.dial()
	another.Stop()
	n.mu.Lock()
	n.connecting--
	var refused []*request
	switch {
	case err == nil && n.closed:
		err = net.ErrClosed
	case err == nil:
		n.wires = append(n.wires, w)
	case len(n.wires) == 0:
		refused = n.takeQueue()
	}
	n.mu.Unlock()
	failAll(refused, fault.Unreached{Err: err})
	switch {
	case err == nil:
		n.flush(w)
	case w != nil:
		w.end()
	}
}

// dial makes a wire when the gate allows it. If a new era began while the wire was being made,
// dial makes another: at once, and then with growing pauses, since behind Sentinels a dial can begin the
// era itself.
func (n *Node) dial() (*wire, error) {
	for tries := 0; ; tries++ {
		if tries > 1 {
			_ = waitFor(n.life, nil, pauseAfter(tries-1))
		}
		p, err := n.gate.enter(n.life)
		if err != nil {
			return nil, err
		}
		w, err := n.connect(n.life)
		n.gate.leave(p, err != nil && n.life.Err() == nil)
		switch {
		case err != nil:
			n.gate.doubtful.Store(true)
			return nil, err
		case !n.current(w):
			w.end()
			continue
		case n.gate.doubtful.CompareAndSwap(true, false):
			n.gate.events.TellDoubt(Doubt{All: true})
		}
		return w, nil
	}
}

// Doubt makes sure that every connection that was made up to now is dropped before it is used
// again.
func (n *Node) Doubt() {
	n.gate.era.Add(1)
	n.gate.doubtful.Store(true)
	n.discard()
}

// loss is how a wire in use has failed.
type loss int

const (
	hungUp   loss = iota // the other end has closed the connection
	unserved             // the server does not answer as a master does
	silent               // the server is silent
)

// lost records that a wire of the node has failed. The other wires may lead to a server that
// was the master and, once thawed, still takes itself for it, so they are dropped. Only the
// first loss of an era counts: after it all wires of that era are being dropped.
func (n *Node) lost(w *wire, how loss) {
	if how != silent { // a server that was only slow has forgotten nothing
		n.gate.doubtful.Store(true)
	}
	if !n.gate.era.CompareAndSwap(w.era, w.era+1) {
		return
	}
	if how == silent {
		n.gate.pace.silent(w.patience)
	}
	switch {
	case how != hungUp:
		n.gate.fail(how == silent)
	case !w.proven:
		n.gate.hungUp()
	}
	n.discard()
}

// discard ends the idle wires of earlier eras on both nodes of the server. Wires in use end when
// they are given back.
func (n *Node) discard() {
	for _, each := range n.siblings() {
		each.endIdle(func(w *wire) bool { return !each.current(w) })
	}
}

// SweepEvery is how often idle wires are looked at. It is the precision of the user's ConnMaxIdleTime
// and ConnMaxLifetime.
const SweepEvery = 10 * time.Second

// Sweep ends the idle wires that were last used longer ago than the user allows, and those that
// are older than the user allows. One connection for renewals is enough when there is no backlog, so
// sweep also ends the others that have not been used since the last sweep.
func (n *Node) Sweep(now time.Time) {
	limit := n.options.ConnMaxIdleTime
	for _, each := range n.siblings() {
		more := each.moreForRenewals()
		each.endIdle(func(w *wire) bool {
			idle := now.Sub(w.since)
			return !each.current(w) || limit > 0 && idle >= limit || idle >= SweepEvery && slices.Contains(more, w)
		})
	}
}

// moreForRenewals returns the idle connections for renewals but the one that is used first.
func (n *Node) moreForRenewals() []*wire {
	n.mu.Lock()
	defer n.mu.Unlock()
	idle := n.renewals.idle
	return slices.Clone(idle[:max(0, len(idle)-1)])
}

// endIdle ends the idle wires for which which reports true.
func (n *Node) endIdle(which func(*wire) bool) {
	n.mu.Lock()
	var ended []*wire
	for _, w := range n.free {
		if which(w) {
			ended = append(ended, w)
		}
	}
	n.free = slices.DeleteFunc(n.free, func(w *wire) bool { return slices.Contains(ended, w) })
	n.wires = slices.DeleteFunc(n.wires, func(w *wire) bool { return slices.Contains(ended, w) })
	for _, w := range n.renewals.idle {
		if which(w) {
			ended = append(ended, w)
		}
	}
	n.renewals.idle = slices.DeleteFunc(n.renewals.idle, func(w *wire) bool { return slices.Contains(ended, w) })
	n.reach()
	n.mu.Unlock()
	for _, w := range ended {
		w.end()
	}
}

// Retire gives both nodes of the server up if nothing is on either, and reports whether it did. A
// caller that still has one of them is sent to look for the server again.
func (n *Node) Retire() bool {
	both := n.siblings()
	for _, each := range both {
		each.endIdle(func(*wire) bool { return true })
	}
	for _, each := range both {
		each.mu.Lock()
		defer each.mu.Unlock()
	}
	if slices.ContainsFunc(both, (*Node).inUse) {
		return false
	}
	for _, each := range both {
		each.retired = true
	}
	return true
}

// inUse reports whether anything is on the node, idle connections included. The caller holds the
// mutex.
func (n *Node) inUse() bool {
	p := &n.renewals
	return len(n.queue) > 0 || len(n.wires) > 0 || n.connecting > 0 ||
		len(p.idle) > 0 || len(p.used) > 0 || p.making > 0
}

// siblings returns both nodes of the server.
func (n *Node) siblings() []*Node {
	if n.main != nil {
		n = n.main
	}
	return []*Node{n, n.replicated}
}

// private has the connections with one user at a time. There is one, unless several batches of
// renewals are on their way at the same time.
type private struct {
	idle    []*wire
	used    []*wire       // those that are in use
	making  int           // how many are being made
	made    bool          // one was
	begun   time.Time     // when the last of these was
	changed chan struct{} // closed when the making of one has ended
	err     error         // the error of the last one; nil if it succeeded
}

// takeIdle returns the idle connections.
func (p *private) takeIdle() []*wire {
	idle := p.idle
	p.idle = nil
	return idle
}

// take returns the idle connection that was used last, or nil.
func (p *private) take() *wire {
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	w := p.idle[last]
	p.idle = slices.Delete(p.idle, last, last+1)
	return w
}

// maxIdleRenewals is how many idle connections for renewals a node keeps.
const maxIdleRenewals = 4

// errNotYet says that the connection for renewals is still being made, while a connection of
// the callers works.
var errNotYet = errors.New("still connecting")

// takeRenewals returns the connection for renewals. If there is none, it has one made and waits
// for it until ctx ends. If a connection of the callers works, it does not wait longer than
// slow; and not at all while the server fails, or for the first connection if that one is free. Then it
// returns errNotYet. A connection that is still being made is there for the next try.
func (n *Node) takeRenewals(ctx context.Context) (*wire, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for {
		if w, err := n.readyForRenewals(); w != nil || err != nil {
			return w, err
		}
		n.makeForRenewals()
		if !n.renewals.made && slices.ContainsFunc(n.free, n.current) || n.gate.failing() && n.works() {
			return nil, errNotYet
		}
		if err := n.awaitForRenewals(ctx); err != nil {
			return nil, err
		}
	}
}

// readyForRenewals returns the connection for renewals if it is there and works, an error if there
// will be none, or neither. The caller holds the mutex.
func (n *Node) readyForRenewals() (*wire, error) {
	switch {
	case n.closed:
		return nil, net.ErrClosed
	case n.retired:
		return nil, fault.ErrRetired
	}
	for w := n.renewals.take(); w != nil; w = n.renewals.take() {
		if n.current(w) {
			n.renewals.used = append(n.renewals.used, w)
			return w, nil
		}
		n.workers.Go(w.end)
	}
	return nil, nil
}

// makeForRenewals has a connection for renewals made, unless one is being made already; another
// one if that takes long. The caller holds the mutex.
func (n *Node) makeForRenewals() {
	p := &n.renewals
	took := time.Since(p.begun)
	if p.making >= maxWires || p.making > 1 && took < n.gate.pace.least || p.making == 1 && took < slow {
		return
	}
	p.making++
	p.begun = time.Now()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	n.workers.Go(n.openRenewals)
}

// awaitForRenewals waits until the making of a connection for renewals has ended, or slow has passed.
// It returns why its caller waits no longer, or nil. The caller holds the mutex, which
// awaitForRenewals gives up while it waits.
func (n *Node) awaitForRenewals(ctx context.Context) error {
	p := &n.renewals
	changed := p.changed
	n.mu.Unlock()
	late := !closedWithin(ctx, changed, slow)
	n.mu.Lock()
	switch {
	case len(p.idle) > 0:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case late && n.works():
		return errNotYet
	case late:
		return nil // p.err is that of an earlier one
	default:
		return p.err
	}
}

// works reports whether callers have a connection that works.
func (n *Node) works() bool { return slices.ContainsFunc(n.wires, n.current) }

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
func (n *Node) openRenewals() {
	w, err := n.dial()
	n.mu.Lock()
	p := &n.renewals
	p.making--
	p.err = err
	spare := w
	p.made = p.made || err == nil
	if err == nil && !n.closed && len(p.idle) < maxIdleRenewals {
		w.watchful = true
		p.idle, spare = append(p.idle, w), nil
	}
	close(p.changed)
	p.changed = nil
	if p.making > 0 {
		p.changed = make(chan struct{})
	}
	n.mu.Unlock()
	if spare != nil {
		spare.end()
	}
}

// giveRenewals gives the connection for renewals back.
func (n *Node) giveRenewals(w *wire) {
	n.mu.Lock()
	spare := w
	p := &n.renewals
	p.used = slices.DeleteFunc(p.used, func(other *wire) bool { return other == w })
	if n.current(w) && !n.closed && len(p.idle) < maxIdleRenewals {
		p.idle, spare = append(p.idle, w), nil
	}
	n.mu.Unlock()
	if spare != nil {
		spare.end()
	}
}
