// A node: one server, as this process reaches it.

package server

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/call"
	"github.com/holdfast-go/holdfast/internal/conn/dial"
)

// Node is one server. The package's comment says what its carriers are for.
type Node struct {
	Addr    string
	options *redis.Options
	feed    *dial.Feed // of streamed credentials; nil if there are none
	gate    *gate

	callers    carrier // for most calls
	replicated carrier // for calls that wait for replicas
	renewals   carrier // for renewals

	apart    apart
	learned  learned
	requests requests

	life    context.Context // ends at Close
	cancel  context.CancelFunc
	workers sync.WaitGroup // the goroutines that flush queues, and those that connect
}

// New returns the node of the server at addr, which is reached with these options. f are the
// streamed credentials among them, nil if there are none; events hears what is found out about the
// server, and may be nil.
func New(addr string, options *redis.Options, f *dial.Feed, events *Events) *Node {
	n := &Node{Addr: addr, options: options, feed: f, gate: newGate(options.ReadTimeout)}
	n.gate.events = events
	n.life, n.cancel = context.WithCancel(context.Background())
	for _, c := range n.carriers() {
		c.node = n
	}
	return n
}

func (n *Node) carriers() []*carrier { return []*carrier{&n.callers, &n.replicated, &n.renewals} }

// forCall returns the carrier on which the call must go.
func (n *Node) forCall(c *call.Call) *carrier {
	if c.Replicas > 0 {
		return &n.replicated
	}
	return &n.callers
}

// Send sends a call once and waits for its answer, which it records in the call.
func (n *Node) Send(ctx context.Context, s Sending) Outcome {
	r := n.requests.get()
	r.call, r.Manner, r.slot = s.Call, s.Manner, s.Slot
	r.Full = r.Full || n.gate.pace.slow()
	if !n.forCall(s.Call).do(ctx, r, s.Elsewhere) {
		r.leave()
		return Outcome{Left: true}
	}
	r.settle()
	o := Outcome{Err: r.err, Messages: r.messages()}
	n.requests.put(r)
	return o
}

// Failing reports whether the server does not serve at present.
func (n *Node) Failing() bool { return n.gate.failing() }

// Wide reports whether a request that was given longer than Window may still take effect.
func (n *Node) Wide() bool { return n.gate.pace.wide(time.Now()) }

// Needs returns how long two requests, one sent after the other, may take to be answered; 0 unless the
// server is known to be slow.
func (n *Node) Needs() time.Duration { return n.gate.pace.needs() }

// current reports whether the wire may be used once more.
func (n *Node) current(w *wire) bool {
	return !w.broken.Load() && w.era == n.gate.era.Load() && (w.expires.IsZero() || time.Now().Before(w.expires))
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

// lost records that a wire of the node has failed. The other wires may lead to a former master that
// was frozen and still takes itself for the master, so they are dropped. Only the first loss of an
// era counts: after it all wires of that era are being dropped.
func (n *Node) lost(w *wire, how loss) {
	if how != silent { // a server that was only slow has forgotten nothing
		n.gate.doubtful.Store(true)
	}
	if !n.gate.era.CompareAndSwap(w.era, w.era+1) {
		return
	}
	if how == silent {
		n.gate.pace.raise(w.patience)
	}
	switch {
	case how != hungUp:
		n.gate.fail(how == silent)
	case !w.proven:
		n.gate.hungUp()
	}
	n.discard()
}

// discard ends the idle wires of earlier eras. Wires in use end when they are given back.
func (n *Node) discard() {
	for _, c := range n.carriers() {
		c.endIdle(func(w *wire) bool { return !n.current(w) })
	}
}

// SweepEvery is how often idle wires are looked at. It is the precision of the user's ConnMaxIdleTime
// and ConnMaxLifetime.
const SweepEvery = 10 * time.Second

// Sweep ends the idle wires that were last used longer ago than the user allows, and those that
// are older than the user allows. One connection for renewals is enough when there is no backlog, so
// Sweep also ends the others that have not been used since the last sweep.
func (n *Node) Sweep(now time.Time) {
	limit, more := n.options.ConnMaxIdleTime, n.renewals.idleButOne()
	for _, c := range n.carriers() {
		c.endIdle(func(w *wire) bool {
			idle := now.Sub(w.since)
			return !n.current(w) || limit > 0 && idle >= limit || idle >= SweepEvery && slices.Contains(more, w)
		})
	}
}

// Retire gives the server up if nothing is on it, and reports whether it did. A caller that still has
// the node is sent to look for the server again.
func (n *Node) Retire() bool {
	all := n.carriers()
	for _, c := range all {
		c.endIdle(func(*wire) bool { return true })
	}
	for _, c := range all {
		c.mu.Lock()
		defer c.mu.Unlock()
	}
	if slices.ContainsFunc(all, (*carrier).inUse) {
		return false
	}
	for _, c := range all {
		c.retired = true
	}
	return true
}

// Interrupt fails the queued requests and cuts every connection that callers use, so that they
// return. From then on the node accepts clean-ups only. Renewals go on until Close.
func (n *Node) Interrupt() {
	n.callers.interrupt()
	n.replicated.interrupt()
}

// Close ends the node for good and waits for its workers. Callers on a wire of their own return
// because their connection is cut.
func (n *Node) Close() {
	var idle []*wire
	for _, c := range n.carriers() {
		idle = append(idle, c.close()...)
	}
	n.cancel()
	for _, c := range n.carriers() {
		c.interrupt()
	}
	for _, w := range idle {
		w.end()
	}
	n.workers.Wait()
}
