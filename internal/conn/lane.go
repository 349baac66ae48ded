// A lane: all requests for one server, by group commit.

package conn

import (
	"context"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
)

const (
	// maxWires is how many connections a lane opens for its callers. Four keep
	// one server busy; more only make the batches smaller.
	maxWires = 4
	// maxBatch bounds a pipeline, and so how long it makes other clients of the
	// same server wait.
	maxBatch = 128
)

// lane carries all requests for one server, by group commit: a caller who finds
// a wire free sends at once, by itself; callers who find every wire busy queue,
// and when a wire comes free its share of what has queued goes out as one pipeline.
//
// The queue holds at most one request per goroutine that waits in Run.
type lane struct {
	addr    string
	options *redis.Options

	renewals wire // for renewals alone, which never stand behind callers; one user at a time
	// replicated carries the calls that wait for replicas, so that no other does;
	// nil on a lane that is one itself.
	replicated *lane

	mu      sync.Mutex // guards what follows
	queue   []*request
	sent    int // how many requests are on wires
	free    []*wire
	wires   []*wire // all that were made
	closing bool    // only clean-ups are taken
	closed  bool

	era atomic.Int64 // counts failures: a wire of an earlier era is of doubtful use

	flushers sync.WaitGroup
}

func newLane(addr string, options *redis.Options) *lane {
	l := &lane{addr: addr, options: options}
	l.renewals = wire{options: options, lane: l}
	l.replicated = &lane{addr: addr, options: options}
	return l
}

// forCall returns the lane on which the call goes to this one's server.
func (l *lane) forCall(c *Call) *lane {
	if c.Replicas > 0 {
		return l.replicated
	}
	return l
}

// do sends r and waits for its answer. It reports false if ctx ended first: then
// r has been taken back, or is on its way.
func (l *lane) do(ctx context.Context, r *request) bool {
	w := l.board(r)
	if w != nil {
		w.runOne(ctx, r)
		l.release(w, 1)
		return true
	}
	select {
	case <-r.done:
		return true
	case <-ctx.Done():
		l.takeBack(r)
		return false
	}
}

// takeBack takes r out of the queue if it is still there.
func (l *lane) takeBack(r *request) {
	if !r.withdraw() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = slices.DeleteFunc(l.queue, func(other *request) bool { return other == r })
}

// board gives the caller a wire of its own, or queues the request.
func (l *lane) board(r *request) *wire {
	l.mu.Lock()
	defer l.mu.Unlock()
	refused := l.closed || l.closing && !r.call.Cleanup
	if !refused && len(l.queue) == 0 {
		if w := l.freeWire(); w != nil {
			l.sent++
			return w
		}
	}
	r.queued = true
	if r.done == nil {
		r.done = make(chan struct{}, 1)
	}
	if refused {
		r.fail(unsent{errs.Closed})
	} else {
		l.queue = append(l.queue, r)
	}
	return nil
}

// freeWire takes a wire that nobody uses, the one used last so that few stay
// open, or makes one. It returns nil when all are busy.
func (l *lane) freeWire() *wire {
	if n := len(l.free); n > 0 {
		w := l.free[n-1]
		l.free = l.free[:n-1]
		return w
	}
	if len(l.wires) == maxWires {
		return nil
	}
	w := &wire{options: l.options, lane: l}
	l.wires = append(l.wires, w)
	return w
}

// doubt has every connection that was made up to now dropped before it is used
// again. One of them has failed, so the others may lead to a server that was
// master and, thawed, takes itself for it still.
func (l *lane) doubt() {
	l.era.Add(1)
	if l.replicated != nil {
		l.replicated.doubt()
	}
}

// release gives a wire back, on which so many requests were answered. If requests
// have queued meanwhile a flusher takes it over, so that the caller goes on with its
// own work.
func (l *lane) release(w *wire, answered int) {
	l.mu.Lock()
	l.sent -= answered
	closed := l.closed
	switch {
	case closed:
	case len(l.queue) == 0:
		l.free = append(l.free, w)
	default:
		l.flushers.Go(func() { l.flush(w) })
	}
	l.mu.Unlock()
	if closed {
		w.reset()
	}
}

// flush sends what has queued, batch after batch, until the queue is empty.
func (l *lane) flush(w *wire) {
	for {
		runtime.Gosched() // those who were just answered may have more to send
		if w.batch = l.nextBatch(w.batch); len(w.batch) == 0 {
			break
		}
		w.run(detached, w.batch...)
		clear(w.batch)
	}
	l.release(w, 0)
}

// nextBatch takes the head of the queue, once the last batch was answered. The array
// of that becomes this one's, or the queue's.
//
// It leaves as many as it takes for each wire, so that there is something to send as
// soon as answers come: with all that waits on its way server and callers would work
// by turns.
func (l *lane) nextBatch(last []*request) []*request {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent -= len(last)
	n := min(len(l.queue), maxBatch, (l.sent+len(l.queue))/(maxWires+1)+1)
	l.sent += n
	if n == len(l.queue) {
		batch := l.queue
		l.queue = last[:0]
		return batch
	}
	batch := append(last[:0], l.queue[:n]...)
	l.queue = slices.Delete(l.queue, 0, n)
	return batch
}

// interrupt fails what is queued and cuts every connection, so that all callers
// return. From then on the lane takes clean-ups only.
func (l *lane) interrupt() {
	l.mu.Lock()
	l.closing = true
	queue, wires := l.queue, slices.Clone(l.wires)
	l.queue = nil
	l.mu.Unlock()

	for _, r := range queue {
		if r.withdraw() {
			r.fail(unsent{net.ErrClosed})
		}
	}
	for _, w := range wires {
		w.hangUp(w.lifeNow())
	}
	if l.replicated != nil {
		l.replicated.interrupt()
	}
}

// close ends the lane for good and waits for its flushers. Callers on a wire of
// their own return as their connection is cut.
func (l *lane) close() {
	l.mu.Lock()
	again := l.closed
	l.closed = true
	free := l.free
	l.free = nil
	l.mu.Unlock()

	l.interrupt()
	for _, w := range free {
		w.reset()
	}
	l.flushers.Wait()
	if l.replicated == nil {
		return
	}
	l.replicated.close()
	if !again {
		l.renewals.reset()
	}
}
