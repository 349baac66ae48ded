// Group commit: the requests of callers queue while every wire is busy, and go out in pipelines.

package server

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn/fault"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// maxBatch bounds the size of a pipeline, and so how long it makes other clients of the same server
// wait.
const maxBatch = 128

// do sends r and waits for its answer: on a free wire at once, or from the queue.
//
// do reports false if ctx ended first, or if elsewhere reported, while r was in the queue, that r
// belongs to another server. Then r has been withdrawn, or is on its way.
func (c *carrier) do(ctx context.Context, r *request, elsewhere func() bool) bool {
	w := c.board(r)
	if w == nil {
		return c.await(ctx, r, elsewhere)
	}
	w.runOne(ctx, r)
	w.alone = false
	c.release(w, 1)
	return true
}

// await waits for the answer to a request in the queue. Every slow, it asks elsewhere, if that
// is not nil and the server is failing.
func (c *carrier) await(ctx context.Context, r *request, elsewhere func() bool) bool {
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
				c.forget()
			}
			return false
		case <-look:
			if c.node.gate.failing() && elsewhere() && r.withdraw() {
				c.forget()
				return false
			}
		}
	}
}

// forget records that a request in the queue was withdrawn. The request stays in the queue
// until more than half of the queue has been withdrawn: removing each alone would take as
// long as the queue is.
func (c *carrier) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead++; c.dead > len(c.queue)/2 {
		c.queue = slices.DeleteFunc(c.queue, (*request).isWithdrawn)
		c.dead = 0
	}
}

// board gives the caller a wire of its own, or queues the request and returns nil.
func (c *carrier) board(r *request) *wire {
	c.mu.Lock()
	defer c.mu.Unlock()
	refused := c.closed || c.closing && !r.call.Cleanup
	if !refused && !c.retired && len(c.queue) == 0 {
		if w := c.freeWire(); w != nil {
			c.load(1)
			w.alone = c.busy == 1
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
	case c.retired:
		r.fail(fault.Unsent{Err: fault.ErrRetired})
		return nil
	}
	c.queue = append(c.queue, r)
	c.reach()
	return nil
}

// load records that count requests are put on one wire.
func (c *carrier) load(count int) {
	if count > 0 {
		c.sent += count
		c.busy++
	}
}

// unload records that the given number of requests on one wire were answered.
func (c *carrier) unload(count int) {
	if count > 0 {
		c.sent -= count
		c.busy--
	}
}

// release gives a wire back after the given number of requests on it were answered. If requests
// have queued meanwhile, a worker takes the wire over, so that the caller can go on with its
// own work.
func (c *carrier) release(w *wire, answered int) {
	c.mu.Lock()
	c.unload(answered)
	usable := c.node.current(w) && !c.closed
	switch {
	case !usable:
		c.remove(w)
		c.reach()
	case len(c.queue) == 0:
		c.free = append(c.free, w)
	default:
		c.node.workers.Go(func() { c.flush(w) })
	}
	c.mu.Unlock()
	if !usable {
		w.end()
	}
}

// flush sends the queued requests, batch after batch, until the queue is empty.
func (c *carrier) flush(w *wire) {
	for {
		if w.batch = c.nextBatch(w, w.batch); len(w.batch) == 0 {
			break
		}
		answered := w.run(detached, w.batch...)
		c.mu.Lock()
		c.unload(len(w.batch)) // before a caller that is answered looks for a wire
		c.mu.Unlock()
		for _, r := range answered {
			r.finish()
		}
		clear(w.batch)
		runtime.Gosched() // those callers may have more to send
	}
	c.release(w, 0)
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
func (c *carrier) nextBatch(w *wire, last []*request) []*request {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.node.current(w) {
		return nil
	}
	count := min(len(c.queue), maxBatch, (c.sent+len(c.queue))/(maxWires+1)+1)
	if !w.proven && c.node.gate.failing() {
		count = min(count, 1)
	}
	c.load(count)
	for _, r := range c.queue[:count] {
		if r.isWithdrawn() {
			c.dead--
		}
	}
	if count == len(c.queue) {
		batch := c.queue
		c.queue = last[:0]
		return batch
	}
	batch := append(last[:0], c.queue[:count]...)
	c.queue = slices.Delete(c.queue, 0, count)
	c.reach()
	return batch
}

func (c *carrier) takeQueue() []*request {
	queue := c.queue
	c.queue, c.dead = nil, 0
	return queue
}

func failAll(queue []*request, err error) {
	for _, r := range queue {
		if r.withdraw() {
			r.fail(fault.Unsent{Err: err})
		}
	}
}

// queueAll queues the requests for the wires of callers. It reports false if there is none that
// works.
func (c *carrier) queueAll(batch []*request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !slices.ContainsFunc(c.wires, c.node.current) {
		return false
	}
	for _, r := range batch {
		r.queued, r.urgent = true, true
		if r.done == nil {
			r.done = make(chan struct{}, 1)
		}
	}
	c.queue = append(c.queue, batch...)
	if w := c.freeWire(); w != nil {
		c.node.workers.Go(func() { c.flush(w) })
	}
	return true
}
