// Batches of renewals have a wire each, so that they never stand behind callers.

package server

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn/fault"
)

// maxIdleRenewals is how many idle connections for renewals a node keeps.
const maxIdleRenewals = 4

// errNotYet says that the connection for renewals is still being made, while a connection of
// the callers works.
var errNotYet = errors.New("still connecting")

// takeRenewals returns a connection for renewals. If there is none, it starts one and waits for it, until ctx ends. It
// returns errNotYet where a connection of the callers can take the renewals: if one works, after slow, or at once if
// the server fails; and at once if one is free and none was made for renewals yet. The connection that is being made is
// there for the next try.
func (n *Node) takeRenewals(ctx context.Context) (*wire, error) {
	for {
		w, begun, err := n.renewals.takeOrMake()
		if w != nil || err != nil {
			return w, err
		}
		if !begun.any && n.callers.hasFree() || n.gate.failing() && n.callers.works() {
			return nil, errNotYet
		}
		if err := n.awaitRenewals(ctx, begun.changed); err != nil {
			return nil, err
		}
	}
}

// takeOrMake returns the idle wire that was used last. If there is none, it starts the making of one, unless one is
// being made already; and of another one if that takes long. It returns an error if no wire can be made any more. There
// is mostly one, unless several batches of renewals are on their way at the same time.
func (c *carrier) takeOrMake() (*wire, made, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, made{}, net.ErrClosed
	case c.retired:
		return nil, made{}, fault.ErrRetired
	}
	if w := c.freeWire(); w != nil {
		return w, made{}, nil
	}
	if c.connecting < maxWires && c.another(1) {
		c.connecting++
		c.begun = time.Now()
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		c.node.workers.Go(c.openRenewals)
	}
	return nil, c.made, nil
}

// awaitRenewals waits until the making of a connection for renewals has ended, or slow has passed. It
// returns nil if the caller is to try again, and an error otherwise.
func (n *Node) awaitRenewals(ctx context.Context, changed <-chan struct{}) error {
	n.renewals.wanted(1)
	late := !closedWithin(ctx, changed, slow)
	n.renewals.wanted(-1)
	idle, err := n.renewals.lastMade()
	switch {
	case idle:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case late && n.callers.works():
		return errNotYet
	case late:
		return nil // err is that of an earlier one
	default:
		return err
	}
}

// lastMade reports whether a wire is idle, and returns the error with which the last making of a
// wire ended.
func (c *carrier) lastMade() (idle bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.free) > 0, c.err
}

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

// wanted counts the batches that wait for a wire. Its argument is 1 when one begins to wait, and -1
// when its wait ends.
func (c *carrier) wanted(by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.awaited += by
}

// openRenewals makes a wire for renewals. If no batch waits for it any more, and the server fails, requests
// that wait for a wire get it: otherwise their dial would pause until this wire had served somebody.
func (c *carrier) openRenewals() {
	w, err := c.node.dial()
	lent := err == nil && c.spare() && (c.node.callers.adopt(w) || c.node.replicated.adopt(w))
	c.mu.Lock()
	c.connecting--
	c.err = err
	c.any = c.any || err == nil
	kept := err == nil && !lent && c.keep(w)
	if kept {
		w.watchful = true
		c.wires = append(c.wires, w)
	}
	close(c.changed)
	c.changed = nil
	if c.connecting > 0 {
		c.changed = make(chan struct{})
	}
	c.mu.Unlock()
	if w != nil && !kept && !lent {
		w.end()
	}
}

// spare reports whether a wire that was made for renewals now may go to others.
func (c *carrier) spare() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.awaited == 0 && c.node.gate.failing()
}

func (c *carrier) giveRenewals(w *wire) {
	c.mu.Lock()
	kept := c.node.current(w) && c.keep(w)
	if !kept {
		c.remove(w)
	}
	c.mu.Unlock()
	if !kept {
		w.end()
	}
}

// keep makes a wire for renewals idle, unless there are enough of them. The caller holds the mutex.
func (c *carrier) keep(w *wire) bool {
	if c.closed || len(c.free) >= maxIdleRenewals {
		return false
	}
	c.free = append(c.free, w)
	return true
}
