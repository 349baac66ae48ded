// Which connection carries renewals.

package conn

import (
	"context"
	"slices"
	"sync"
)

// renew sends the requests once, on the connection for renewals. If that cannot be made, they
// go on the connections of the callers: a failure to make a new connection says nothing about
// the others. renew reports which requests were left behind when ctx ended: they are on their
// way or in the queue, and must not be used again.
func (n *node) renew(ctx context.Context, batch []*request) (left []bool) {
	left = make([]bool, len(batch))
	w, err := n.takeRenewals(ctx)
	switch {
	case err == nil:
		w.run(ctx, batch...)
		n.giveRenewals(w)
	case ctx.Err() == nil && n.queueAll(batch):
		for i, r := range batch {
			left[i] = !n.await(ctx, r, nil)
		}
	default:
		for _, r := range batch {
			r.err = unsent{err}
		}
	}
	return left
}

// queueAll queues the requests for the wires of callers. It reports false if there is none that
// works.
func (n *node) queueAll(batch []*request) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed || !n.works() {
		return false
	}
	for _, r := range batch {
		r.queued, r.urgent = true, true
		if r.done == nil {
			r.done = make(chan struct{}, 1)
		}
	}
	n.queue = append(n.queue, batch...)
	if w := n.freeWire(); w != nil {
		n.workers.Go(func() { n.flush(w) })
	}
	return true
}

// learned is the scripts that a server may be asked for by their hashes in renewals, as it has answered them since it
// last failed. Others are sent whole: where the process hardly gets to run, a second round, after a server
// that did not know a script, takes as long again as the first, and the lease may end meanwhile.
type learned struct {
	mu      sync.Mutex // guards what follows
	era     int64      // of the gate
	scripts []*Script
}

func (l *learned) has(s *Script, era int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.era == era && slices.Contains(l.scripts, s)
}

// from takes in the answer to a request. It reports whether the script must be sent otherwise now: whole, as the
// server does not have it, or by its hash, as the server refuses EVAL, and somebody else may have loaded it.
func (l *learned) from(r *request, era int64) (otherwise bool) {
	unloaded := r.err != nil && judge(r.err) == unknown
	refused := r.full && refusesEval(r.err)
	if r.err != nil && !unloaded && !refused {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.era != era {
		l.era, l.scripts = era, nil
	}
	s := r.script()
	l.scripts = slices.DeleteFunc(l.scripts, func(other *Script) bool { return other == s })
	if !unloaded {
		l.scripts = append(l.scripts, s)
	}
	return unloaded || refused
}
