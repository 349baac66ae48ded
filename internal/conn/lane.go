// A lane: all requests for one server, by group commit.

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
	// maxWires is how many connections a lane opens for its callers. Four keep
	// one server busy; more only make the batches smaller.
	maxWires = 4
	// maxBatch bounds a pipeline, and so how long it makes other clients of the
	// same server wait.
	maxBatch = 128
	// slow is how long a connection may take to be made before whoever comes next has
	// another one begun beside it.
	slow = 250 * time.Millisecond
)

// lane carries all requests for one server, by group commit: a caller who finds
// a wire free sends at once, by itself; callers who find every wire busy queue,
// and when a wire comes free its share of what has queued goes out as one pipeline.
//
// Wires are made in the background, by goroutines of the lane, one at a time. What they
// are made for waits in the queue, and goes out on whichever wire comes free first. A wire
// that cannot be made fails what has queued only where no other wire is left.
type lane struct {
	addr    string
	options *redis.Options
	gate    *gate // of the server; replicated has the same
	feed    *feed // of streamed credentials; nil where there are none

	// replicated carries the calls that wait for replicas, so that no other does;
	// nil on a lane that is one itself.
	replicated *lane
	main       *lane // whose replicated this is; nil on any other

	// cluster keeps these, under a mutex of its own.
	key  string    // that was looked up last
	used time.Time // and when

	life   context.Context // ends at close
	cancel context.CancelFunc

	mu         sync.Mutex // guards what follows
	queue      []*request
	dead       int // how many in the queue have been withdrawn
	sent       int // how many requests are on wires
	busy       int // how many wires they are on
	free       []*wire
	wires      []*wire   // all that callers have
	connecting int       // how many are being made
	begun      time.Time // when the last of these was
	renewals   private   // for renewals alone, which never stand behind callers
	closing    bool      // only clean-ups are taken
	closed     bool
	retired    bool // nothing is taken

	workers sync.WaitGroup // the goroutines that flush the queue and that connect
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

// forCall returns the lane on which the call goes to this one's server.
func (l *lane) forCall(c *Call) *lane {
	if c.Replicas > 0 {
		return l.replicated
	}
	return l
}

// do sends r and waits for its answer. It reports false if ctx ended first, or if
// elsewhere has found, while r was in the queue, that r belongs to another server: then
// r has been taken back, or is on its way.
func (l *lane) do(ctx context.Context, r *request, elsewhere func() bool) bool {
	w := l.board(r)
	if w == nil {
		return l.await(ctx, r, elsewhere)
	}
	w.runOne(ctx, r)
	l.release(w, 1)
	return true
}

// await waits for the answer to a request in the queue.
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

// forget takes in that a request in the queue was withdrawn. It stays there until half of
// the queue has been: to look for each would take as long as the queue is.
func (l *lane) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead++; l.dead > len(l.queue)/2 {
		l.queue = slices.DeleteFunc(l.queue, (*request).isWithdrawn)
		l.dead = 0
	}
}

// board gives the caller a wire of its own, or queues the request.
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

// freeWire takes a wire that nobody uses, the one used last so that few stay
// open. It returns nil where there is none.
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

// load takes in that so many requests are put on one wire.
func (l *lane) load(n int) {
	if n > 0 {
		l.sent += n
		l.busy++
	}
}

// unload takes in that so many requests on one wire have been answered.
func (l *lane) unload(n int) {
	if n > 0 {
		l.sent -= n
		l.busy--
	}
}

// release gives a wire back, on which so many requests were answered. If requests
// have queued meanwhile a worker takes it over, so that the caller goes on with its
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

// flush sends what has queued, batch after batch, until the queue is empty.
func (l *lane) flush(w *wire) {
	for {
		runtime.Gosched() // those who were just answered may have more to send
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

// nextBatch takes the head of the queue for the wire. The array of its last batch becomes this one's, or the queue's.
//
// It leaves as many as it takes for each wire, so that there is something to send as
// soon as answers come: with all that waits on its way server and callers would work
// by turns.
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

// interrupt fails what is queued and cuts every connection that is in use, so that all
// callers return. From then on the lane takes clean-ups only.
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

// close ends the lane for good and waits for its workers. Callers on a wire of
// their own return as their connection is cut.
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
