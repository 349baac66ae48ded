// A carrier: some of the wires to one server, and the requests that they carry.

package server

import (
	"net"
	"slices"
	"sync"
	"time"
)

// maxWires is how many connections a carrier opens. Four keep one server busy; more would only make
// the batches smaller.
const maxWires = 4

// carrier carries requests to one server. Requests for callers go by group commit: see do. Batches of
// renewals have a wire each: see takeRenewals. What waits for a wire goes out on whichever comes free
// first.
type carrier struct {
	node *Node

	mu sync.Mutex // guards what follows
	traffic
	free       []*wire
	wires      []*wire   // all of them
	connecting int       // how many are being made
	begun      time.Time // when the making of the last of these began
	made
	phase
}

// phase is what a carrier still accepts.
type phase struct {
	closing bool // only clean-ups
	closed  bool // nothing, and it has ended
	retired bool // nothing, and the cluster makes another if the server is asked again
}

// traffic is what callers give a carrier to send.
type traffic struct {
	queue []*request
	dead  int // how many requests in the queue have been withdrawn
	sent  int // how many requests are on wires now
	busy  int // how many wires carry them
}

// made is the state of the making of wires for renewals.
type made struct {
	any     bool          // one was
	awaited int           // how many batches wait for one
	changed chan struct{} // closed when the making of one has ended; nil if none is being made
	err     error         // the error of the last one; nil if it succeeded
}

// freeWire takes a wire that is not in use: the one that was used last, so that few stay open.
// It returns nil if there is none. The caller holds the mutex.
func (c *carrier) freeWire() *wire {
	for count := len(c.free); count > 0; count = len(c.free) {
		w := c.free[count-1]
		c.free = c.free[:count-1]
		if c.node.current(w) {
			return w
		}
		c.remove(w)
		c.node.workers.Go(w.end)
	}
	return nil
}

// remove forgets a wire. The caller holds the mutex.
func (c *carrier) remove(w *wire) {
	c.wires = slices.DeleteFunc(c.wires, func(other *wire) bool { return other == w })
}

// another reports whether to begin the making of one more wire. At most atOnce are made at the same
// time, and up to two more beyond that: one if the last was begun slow ago, and another if it was
// begun as long ago as a server is given for a reply. The caller holds the mutex.
func (c *carrier) another(atOnce int) bool {
	took := time.Since(c.begun)
	switch {
	case c.connecting < atOnce:
		return true
	case c.connecting == atOnce:
		return took >= slow
	default:
		return took >= c.node.gate.pace.least
	}
}

// works reports whether any wire works, even one in use; hasFree, whether one is free.
func (c *carrier) works() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.wires, c.node.current)
}

func (c *carrier) hasFree() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.free, c.node.current)
}

// idleButOne returns the idle wires but the one that is used first.
func (c *carrier) idleButOne() []*wire {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.free[:max(0, len(c.free)-1)])
}

// endIdle ends the idle wires for which which reports true.
func (c *carrier) endIdle(which func(*wire) bool) {
	c.mu.Lock()
	var ended []*wire
	for _, w := range c.free {
		if which(w) {
			ended = append(ended, w)
		}
	}
	has := func(w *wire) bool { return slices.Contains(ended, w) }
	c.free, c.wires = slices.DeleteFunc(c.free, has), slices.DeleteFunc(c.wires, has)
	c.reach()
	c.mu.Unlock()
	for _, w := range ended {
		w.end()
	}
}

// inUse reports whether anything is on the carrier, idle connections included. The caller holds the
// mutex.
func (c *carrier) inUse() bool { return len(c.queue) > 0 || len(c.wires) > 0 || c.connecting > 0 }

// interrupt fails the queued requests and cuts every connection that is in use. From then on the
// carrier accepts clean-ups only.
func (c *carrier) interrupt() {
	c.mu.Lock()
	c.closing = true
	queue := c.takeQueue()
	used := slices.DeleteFunc(slices.Clone(c.wires), func(w *wire) bool { return slices.Contains(c.free, w) })
	c.mu.Unlock()

	failAll(queue, net.ErrClosed)
	for _, w := range used {
		w.hangUp()
	}
}

// close makes the carrier refuse all requests from then on. It returns the idle wires, which the
// caller ends.
func (c *carrier) close() (idle []*wire) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	idle, c.free = c.free, nil
	c.wires = slices.DeleteFunc(c.wires, func(w *wire) bool { return slices.Contains(idle, w) })
	return idle
}
