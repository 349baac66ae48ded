// A lane: all requests to one server, sent by group commit.

package conn

import (
	"context"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
)

const (
	// maxWires is how many connections a lane opens for its callers. Four keep one server busy;
	// more would only make the batches smaller.
	maxWires = 4
	// maxBatch bounds the size of a pipeline, and so how long it makes other clients of the
	// same server wait.
	maxBatch = 128
	// slow is how long the making of a connection may take before the next request starts
	// another one beside it.
	slow = 250 * time.Millisecond
)

// lane carries all requests to one server, by group commit. A caller that finds a free wire
// sends at once, by itself. Callers that find every wire busy queue; when a wire comes free,
// its share of the queue goes out as one pipeline.
//
// Goroutines of the lane make wires in the background, one at a time while the server fails.
// The requests for which a wire is made wait in the queue, and go out on whichever wire comes
// free first. If a wire cannot be made, the queued requests fail only if no other wire is left.
type lane struct {
	addr    string
	options *redis.Options
	gate    *gate // the server's; replicated shares it
	feed    *feed // of streamed credentials; nil if there are none

	// replicated carries the calls that wait for replicas, so that other calls do not wait with
	// them; nil on a lane that is itself a replicated one.
	replicated *lane
	main       *lane // the lane whose replicated this is; nil on any other

	// cluster sets these, under a mutex of its own.
	key  string    // the key that was looked up last
	used time.Time // when that was

	life   context.Context // ends at close
	cancel context.CancelFunc

	mu         sync.Mutex // guards what follows
	queue      []*request
	dead       int // how many requests in the queue have been withdrawn
	sent       int // how many requests are on wires now
	busy       int // how many wires carry them
	free       []*wire
	wires      []*wire   // all wires for callers
	connecting int       // how many wires are being made
	begun      time.Time // when the making of the last of these began
	renewals   private   // for renewals alone, so that they never stand behind callers
	closing    bool      // only clean-ups are accepted
	closed     bool
	retired    bool // nothing is accepted

	workers sync.WaitGroup // the goroutines that flush the queue, and those that connect
}

func newLane(addr string, options *redis.Options) *lane {
	l := oneLane(addr, options, newGate())
	l.replicated = oneLane(addr, options, l.gate)
	l.replicated.main = l
	return l
}

func oneLane(addr string, options *redis.Options, g *gate) *lane {
	l := &lane{addr: addr, options: options, gate: g}
	l.life, l.cancel = context.WithCancel(context.Background())
	return l
}

// forCall returns the lane to this server on which the call must go.
func (l *lane) forCall(c *Call) *lane {
	if c.Replicas > 0 {
		return l.replicated
	}
	return l
}

// do sends r and waits for its answer. It reports false if ctx ended first, or if elsewhere
// reported, while r was in the queue, that r belongs to another server. Then r has been
// withdrawn, or is on its way.
func (l *lane) do(ctx context.Context, r *request, elsewhere func() bool) bool {
	w := l.board(r)
	if w == nil {
		return l.await(ctx, r, elsewhere)
	}
	w.runOne(ctx, r)
	l.release(w, 1)
	return true
}

// await waits for the answer to a request in the queue. Every slow, it asks elsewhere, if that
// is not nil and the server is failing.
func (l *lane) await(ctx context.Context, r *request, elsewhere func() bool) bool {
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
				l.forget()
			}
			return false
		case <-look:
			if l.gate.failing() && elsewhere() && r.withdraw() {
				l.forget()
				return false
			}
		}
	}
}

// forget records that a request in the queue was withdrawn. The request stays in the queue
// until more than half of the queue has been withdrawn: removing each by itself would take as
// long as the queue is.
func (l *lane) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead++; l.dead > len(l.queue)/2 {
		l.queue = slices.DeleteFunc(l.queue, (*request).isWithdrawn)
		l.dead = 0
	}
}

// board gives the caller a wire of its own, or queues the request and returns nil.
func (l *lane) board(r *request) *wire {
	l.mu.Lock()
	defer l.mu.Unlock()
	refused := l.closed || l.closing && !r.call.Cleanup
	if !refused && !l.retired && len(l.queue) == 0 {
		if w := l.freeWire(); w != nil {
			l.load(1)
			return w
		}
	}
	r.queued = true
	if r.done == nil {
		r.done = make(chan struct{}, 1)
	}
	switch {
	case refused:
		r.fail(unsent{errs.Closed})
		return nil
	case l.retired:
		r.fail(unsent{errRetired})
		return nil
	}
	l.queue = append(l.queue, r)
	l.reach()
	return nil
}

// freeWire takes a wire that is not in use: the one that was used last, so that few stay open.
// It returns nil if there is none.
func (l *lane) freeWire() *wire {
	for n := len(l.free); n > 0; n = len(l.free) {
		w := l.free[n-1]
		l.free = l.free[:n-1]
		if l.current(w) {
			return w
		}
		l.remove(w)
		l.workers.Go(w.end)
	}
	return nil
}

// current reports whether the wire may be used once more.
func (l *lane) current(w *wire) bool {
	return !w.broken.Load() && w.era == l.gate.era.Load() && (w.expires.IsZero() || time.Now().Before(w.expires))
}

// load records that n requests are put on one wire.
func (l *lane) load(n int) {
	if n > 0 {
		l.sent += n
		l.busy++
	}
}

// unload records that n requests on one wire have been answered.
func (l *lane) unload(n int) {
	if n > 0 {
		l.sent -= n
		l.busy--
	}
}

// release gives a wire back after the given number of requests on it were answered. If requests
// have queued meanwhile, a worker takes the wire over, so that the caller can go on with its
// own work.
func (l *lane) release(w *wire, answered int) {
	l.mu.Lock()
	l.unload(answered)
	usable := l.current(w) && !l.closed
	switch {
	case !usable:
		l.remove(w)
		l.reach()
	case len(l.queue) == 0:
		l.free = append(l.free, w)
	default:
		l.workers.Go(func() { l.flush(w) })
	}
	l.mu.Unlock()
	if !usable {
		w.end()
	}
}

// remove forgets a wire.
func (l *lane) remove(w *wire) {
	l.wires = slices.DeleteFunc(l.wires, func(other *wire) bool { return other == w })
}

// flush sends the queued requests, batch after batch, until the queue is empty.
func (l *lane) flush(w *wire) {
	for {
		runtime.Gosched() // callers that were just answered may have more to send
		if w.batch = l.nextBatch(w, w.batch); len(w.batch) == 0 {
			break
		}
		answered := w.run(detached, w.batch...)
		l.mu.Lock()
		l.unload(len(w.batch)) // before a caller that is answered looks for a wire
		l.mu.Unlock()
		for _, r := range answered {
			r.finish()
		}
		clear(w.batch)
	}
	l.release(w, 0)
}

// nextBatch takes requests from the head of the queue for the wire. last is the wire's last
// batch; its array is used again for this batch, or for the queue.
//
// A batch is about a fifth of all requests that wait or are on wires, so that as many stay in
// the queue as each wire takes. Then there is something to send as soon as answers come. If
// everything that waits went out at once, the server and the callers would work by turns.
func (l *lane) nextBatch(w *wire, last []*request) []*request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.current(w) {
		return nil
	}
	n := min(len(l.queue), maxBatch, (l.sent+len(l.queue))/(maxWires+1)+1)
	l.load(n)
	for _, r := range l.queue[:n] {
		if r.isWithdrawn() {
			l.dead--
		}
	}
	if n == len(l.queue) {
		batch := l.queue
		l.queue = last[:0]
		return batch
	}
	batch := append(last[:0], l.queue[:n]...)
	l.queue = slices.Delete(l.queue, 0, n)
	l.reach()
	return batch
}

// interrupt fails the queued requests and cuts every connection that is in use, so that all
// callers return. From then on the lane accepts clean-ups only.
func (l *lane) interrupt() {
	l.mu.Lock()
	l.closing = true
	queue := l.takeQueue()
	used := slices.DeleteFunc(slices.Clone(l.wires), func(w *wire) bool { return slices.Contains(l.free, w) })
	l.mu.Unlock()

	failAll(queue, net.ErrClosed)
	for _, w := range used {
		w.hangUp()
	}
	if l.replicated != nil {
		l.replicated.interrupt()
	}
}

// takeQueue empties the queue.
func (l *lane) takeQueue() []*request {
	queue := l.queue
	l.queue, l.dead = nil, 0
	return queue
}

func failAll(queue []*request, err error) {
	for _, r := range queue {
		if r.withdraw() {
			r.fail(unsent{err})
		}
	}
}

// close ends the lane for good and waits for its workers. Callers on a wire of their own return
// because their connection is cut.
func (l *lane) close() {
	l.mu.Lock()
	l.closed = true
	idle := append(l.free, l.renewals.takeIdle()...)
	l.free = nil
	renewing := l.renewals.used
	l.mu.Unlock()

	l.cancel()
	l.interrupt()
	if renewing != nil {
		renewing.hangUp()
	}
	for _, w := range idle {
		w.end()
	}
	l.workers.Wait()
	if l.replicated != nil {
		l.replicated.close()
	}
}
