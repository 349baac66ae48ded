// A node: the requests to one server, sent by group commit.

package server

import (
	"context"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/call"
	"github.com/holdfast-go/holdfast/internal/conn/dial"
	"github.com/holdfast-go/holdfast/internal/conn/fault"
	"github.com/holdfast-go/holdfast/internal/errs"
)

const (
	// maxWires is how many connections a node opens for its callers. Four keep one server busy;
	// more would only make the batches smaller.
	maxWires = 4
	// maxBatch bounds the size of a pipeline, and so how long it makes other clients of the
	// same server wait.
	maxBatch = 128
	// slow is how long the making of a connection may take before the next request starts
	// another one beside it.
	slow = 250 * time.Millisecond
)

// Node carries requests to one server, by group commit. A caller that finds a free wire sends
// at once, by itself. Callers that find every wire busy queue; when a wire comes free, its
// share of the queue goes out as one pipeline. A server has two nodes: the one that topology
// knows, and that one's replicated.
//
// Goroutines of the node make wires in the background, one at a time while the server fails.
// The requests for which a wire is made wait in the queue, and go out on whichever wire comes
// free first. If a wire cannot be made, the queued requests fail only if no other wire is left.
type Node struct {
	Addr    string
	options *redis.Options
	feed    *dial.Feed // of streamed credentials; nil if there are none
	gate    *gate      // the server's; replicated shares it

	// replicated carries the calls that wait for replicas, so that other calls do not wait with
	// them; nil on a node that is itself a replicated one.
	replicated *Node
	main       *Node // the node whose replicated this is; nil on any other

	apart    apart
	learned  learned
	requests requests

	life   context.Context // ends at close
	cancel context.CancelFunc

	mu sync.Mutex // guards what follows
	traffic
	carriers
	renewals private // for renewals alone, so that they never stand behind callers
	phase

	workers sync.WaitGroup // the goroutines that flush the queue, and those that connect
}

// phase is what a node still accepts.
type phase struct {
	closing bool // only clean-ups
	closed  bool // nothing, and it has ended
	retired bool // nothing, and the cluster makes another if the server is asked again
}

// traffic is what callers have a node send.
type traffic struct {
	queue []*request
	dead  int // how many requests in the queue have been withdrawn
	sent  int // how many requests are on wires now
	busy  int // how many wires carry them
}

// carriers are a node's wires for callers.
type carriers struct {
	free       []*wire
	wires      []*wire   // all of them
	connecting int       // how many are being made
	begun      time.Time // when the making of the last of these began
}

// New returns the node of the server at addr, which is reached with these options. f are the
// streamed credentials among them, nil if there are none; events hears what is found out about the
// server, and may be nil.
func New(addr string, options *redis.Options, f *dial.Feed, events *Events) *Node {
	g := newGate(options.ReadTimeout)
	g.events = events
	n := oneNode(addr, options, f, g)
	n.replicated = oneNode(addr, options, f, g)
	n.replicated.main = n
	return n
}

func oneNode(addr string, options *redis.Options, f *dial.Feed, g *gate) *Node {
	n := &Node{Addr: addr, options: options, feed: f, gate: g}
	n.life, n.cancel = context.WithCancel(context.Background())
	return n
}

// Failing reports whether the server does not serve at present.
func (n *Node) Failing() bool { return n.gate.failing() }

// Wide reports whether a request that was given longer than Window may still take effect.
func (n *Node) Wide() bool { return n.gate.pace.wide(time.Now()) }

// forCall returns the node of this server on which the call must go.
func (n *Node) forCall(c *call.Call) *Node {
	if c.Replicas > 0 {
		return n.replicated
	}
	return n
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

// do sends r and waits for its answer. It reports false if ctx ended first, or if elsewhere
// reported, while r was in the queue, that r belongs to another server. Then r has been
// withdrawn, or is on its way.
func (n *Node) do(ctx context.Context, r *request, elsewhere func() bool) bool {
	w := n.board(r)
	if w == nil {
		return n.await(ctx, r, elsewhere)
	}
	w.runOne(ctx, r)
	w.alone = false
	n.release(w, 1)
	return true
}

// await waits for the answer to a request in the queue. Every slow, it asks elsewhere, if that
// is not nil and the server is failing.
func (n *Node) await(ctx context.Context, r *request, elsewhere func() bool) bool {
	var look <-chan time.Time
	if elsewhere != nil {
		ticker := time.NewTicker(slow)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-r.done:
			return true
		case <-ctx.Done():
			if r.withdraw() {
				n.forget()
			}
			return false
		case <-look:
			if n.gate.failing() && elsewhere() && r.withdraw() {
				n.forget()
				return false
			}
		}
	}
}

// forget records that a request in the queue was withdrawn. The request stays in the queue
// until more than half of the queue has been withdrawn: removing each by itself would take as
// long as the queue is.
func (n *Node) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead++; n.dead > len(n.queue)/2 {
		n.queue = slices.DeleteFunc(n.queue, (*request).isWithdrawn)
		n.dead = 0
	}
}

// board gives the caller a wire of its own, or queues the request and returns nil.
func (n *Node) board(r *request) *wire {
	n.mu.Lock()
	defer n.mu.Unlock()
	refused := n.closed || n.closing && !r.call.Cleanup
	if !refused && !n.retired && len(n.queue) == 0 {
		if w := n.freeWire(); w != nil {
			n.load(1)
			w.alone = n.busy == 1
			return w
		}
	}
	r.queued = true
	if r.done == nil {
		r.done = make(chan struct{}, 1)
	}
	switch {
	case refused:
		r.fail(fault.Unsent{Err: errs.Closed})
		return nil
	case n.retired:
		r.fail(fault.Unsent{Err: fault.ErrRetired})
		return nil
	}
	n.queue = append(n.queue, r)
	n.reach()
	return nil
}

// freeWire takes a wire that is not in use: the one that was used last, so that few stay open.
// It returns nil if there is none.
func (n *Node) freeWire() *wire {
	for count := len(n.free); count > 0; count = len(n.free) {
		w := n.free[count-1]
		n.free = n.free[:count-1]
		if n.current(w) {
			return w
		}
		n.remove(w)
		n.workers.Go(w.end)
	}
	return nil
}

// current reports whether the wire may be used once more.
func (n *Node) current(w *wire) bool {
	return !w.broken.Load() && w.era == n.gate.era.Load() && (w.expires.IsZero() || time.Now().Before(w.expires))
}

// load records that count requests are put on one wire.
func (n *Node) load(count int) {
	if count > 0 {
		n.sent += count
		n.busy++
	}
}

// unload records that count requests on one wire have been answered.
func (n *Node) unload(count int) {
	if count > 0 {
		n.sent -= count
		n.busy--
	}
}

// release gives a wire back after the given number of requests on it were answered. If requests
// have queued meanwhile, a worker takes the wire over, so that the caller can go on with its
// own work.
func (n *Node) release(w *wire, answered int) {
	n.mu.Lock()
	n.unload(answered)
	usable := n.current(w) && !n.closed
	switch {
	case !usable:
		n.remove(w)
		n.reach()
	case len(n.queue) == 0:
		n.free = append(n.free, w)
	default:
		n.workers.Go(func() { n.flush(w) })
	}
	n.mu.Unlock()
	if !usable {
		w.end()
	}
}

// remove forgets a wire.
func (n *Node) remove(w *wire) {
	n.wires = slices.DeleteFunc(n.wires, func(other *wire) bool { return other == w })
}

// flush sends the queued requests, batch after batch, until the queue is empty.
func (n *Node) flush(w *wire) {
	for {
		if w.batch = n.nextBatch(w, w.batch); len(w.batch) == 0 {
			break
		}
		answered := w.run(detached, w.batch...)
		n.mu.Lock()
		n.unload(len(w.batch)) // before a caller that is answered looks for a wire
		n.mu.Unlock()
		for _, r := range answered {
			r.finish()
		}
		clear(w.batch)
		runtime.Gosched() // those callers may have more to send
	}
	n.release(w, 0)
}

// nextBatch takes requests from the head of the queue for the wire. last is the wire's last
// batch; its array is used again for this batch, or for the queue.
//
// A batch is about a fifth of all requests that wait or are on wires, so that as many stay in
// the queue as each wire takes. Then there is something to send as soon as answers come. If
// everything that waits went out at once, the server and the callers would work by turns.
//
// While the server fails, a new wire takes one request, and more once that is answered. On a network
// that loses one request in ten, a pipeline of twenty fails nine times in ten, and each failure costs a
// pause.
func (n *Node) nextBatch(w *wire, last []*request) []*request {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.current(w) {
		return nil
	}
	count := min(len(n.queue), maxBatch, (n.sent+len(n.queue))/(maxWires+1)+1)
	if !w.proven && n.gate.failing() {
		count = min(count, 1)
	}
	n.load(count)
	for _, r := range n.queue[:count] {
		if r.isWithdrawn() {
			n.dead--
		}
	}
	if count == len(n.queue) {
		batch := n.queue
		n.queue = last[:0]
		return batch
	}
	batch := append(last[:0], n.queue[:count]...)
	n.queue = slices.Delete(n.queue, 0, count)
	n.reach()
	return batch
}

// Interrupt fails the queued requests and cuts every connection that is in use, so that all
// callers return. From then on the node accepts clean-ups only.
func (n *Node) Interrupt() {
	n.mu.Lock()
	n.closing = true
	queue := n.takeQueue()
	used := slices.DeleteFunc(slices.Clone(n.wires), func(w *wire) bool { return slices.Contains(n.free, w) })
	n.mu.Unlock()

	failAll(queue, net.ErrClosed)
	for _, w := range used {
		w.hangUp()
	}
	if n.replicated != nil {
		n.replicated.Interrupt()
	}
}

// takeQueue empties the queue.
func (n *Node) takeQueue() []*request {
	queue := n.queue
	n.queue, n.dead = nil, 0
	return queue
}

func failAll(queue []*request, err error) {
	for _, r := range queue {
		if r.withdraw() {
			r.fail(fault.Unsent{Err: err})
		}
	}
}

// Close ends the node for good and waits for its workers. Callers on a wire of their own return
// because their connection is cut.
func (n *Node) Close() {
	n.mu.Lock()
	n.closed = true
	idle := append(n.free, n.renewals.takeIdle()...)
	n.free = nil
	renewing := slices.Clone(n.renewals.used)
	n.mu.Unlock()

	n.cancel()
	n.Interrupt()
	for _, w := range renewing {
		w.hangUp()
	}
	for _, w := range idle {
		w.end()
	}
	n.workers.Wait()
	if n.replicated != nil {
		n.replicated.Close()
	}
}
