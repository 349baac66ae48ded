// On which connection renewals go.

package conn

import "context"

// renew sends the requests on the connection for renewals, once. Where that cannot be made
// they go on those of the callers: that a new connection cannot be made says nothing of
// the others. It reports which requests were left behind when ctx ended: they are on their
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

// queueAll queues requests on the wires of callers, if there are any.
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
