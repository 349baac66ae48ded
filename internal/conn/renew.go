// Which connection carries renewals.

package conn

import "context"

// renew sends the requests once, on the connection for renewals. If that cannot be made, they
// go on the connections of the callers: a failure to make a new connection says nothing about
// the others. renew reports which requests were left behind when ctx ended: they are on their
// way or in the queue, and must not be used again.
func (l *lane) renew(ctx context.Context, batch []*request) (left []bool) {
	left = make([]bool, len(batch))
	w, err := l.takeRenewals(ctx)
	switch {
	case err == nil:
		w.run(ctx, batch...)
		l.giveRenewals(w)
	case ctx.Err() == nil && l.queueAll(batch):
		for i, r := range batch {
			left[i] = !l.await(ctx, r, nil)
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
func (l *lane) queueAll(batch []*request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || !l.works() {
		return false
	}
	for _, r := range batch {
		r.queued = true
		if r.done == nil {
			r.done = make(chan struct{}, 1)
		}
	}
	l.queue = append(l.queue, batch...)
	if w := l.freeWire(); w != nil {
		l.workers.Go(func() { l.flush(w) })
	}
	return true
}
