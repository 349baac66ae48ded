// How a carrier of callers gets its wires.

package server

import (
	"net"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn/fault"
)

// slow is how long the making of a connection may take before the next request starts another one
// beside it.
const slow = 250 * time.Millisecond

// reach starts the making of a wire if requests wait, there is room for another wire, and no
// existing wire is about to come free. While the server is well, a wire is made for each
// request that waits: if they all shared one, a lost reply would be lost to all of them.
func (c *carrier) reach() {
	if len(c.queue) == 0 || c.closed || c.busy < len(c.wires) || len(c.wires)+c.connecting >= maxWires {
		return
	}
	atOnce := 1
	if !c.node.gate.failing() {
		atOnce = min(len(c.queue), maxWires)
	}
	if !c.another(atOnce) {
		return
	}
	c.connecting++
	c.begun = time.Now()
	c.node.workers.Go(c.open)
}

// open makes a wire and sends the queued requests on it. If it cannot make one, the other wires
// send the queued requests; if there are none, the requests fail with the error.
func (c *carrier) open() {
	// If it takes long, another one is begun beside it, whether more requests come or not.
	another := time.AfterFunc(c.node.gate.pace.least, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reach()
	})
	w, err := c.node.dial()
	another.Stop()
	c.mu.Lock()
	c.connecting--
	var refused []*request
	kept := err == nil && !c.closed && len(c.wires) < maxWires // one may have been adopted meanwhile
	switch {
	case err == nil && c.closed:
		err = net.ErrClosed
	case kept:
		c.wires = append(c.wires, w)
	case len(c.wires) == 0:
		refused = c.takeQueue()
	}
	c.mu.Unlock()
	failAll(refused, fault.Unreached{Err: err})
	switch {
	case kept:
		c.flush(w)
	case w != nil:
		w.end()
	}
}

// adopt sends the queued requests on a wire that was made for renewals. It reports false if none waits, or
// there are wires enough.
func (c *carrier) adopt(w *wire) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.queue) == c.dead || len(c.wires) >= maxWires {
		return false
	}
	c.wires = append(c.wires, w)
	c.node.workers.Go(func() { c.flush(w) })
	return true
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
