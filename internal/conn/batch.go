// Batches of renewals: one pipeline, once, each call with its own outcome.

package conn

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// RunBatch sends the calls to one server in a pipeline, once, on a connection
// kept for renewals, and has answer called with what became of each: nil where
// the script has answered, an error otherwise. ctx bounds the try. The caller
// decides about another; that goes out on a new connection if this one failed.
//
// For one server only one batch may be under way at a time.
func (m *Manager) RunBatch(ctx context.Context, node string, calls []*Call, answer func(i int, err error)) {
	l := m.topology.at(node)
	outcomes := m.sendOnce(ctx, l, calls)
	var elsewhere []int
	for i, err := range outcomes {
		if m.leadsOn(calls[i], err) {
			elsewhere = append(elsewhere, i)
			continue
		}
		answer(i, m.told(l, calls[i], err))
	}
	m.runAll(ctx, calls, elsewhere, outcomes) // after the others, who need not wait for it
	for _, i := range elsewhere {
		answer(i, outcomes[i])
	}
}

// RunOnce sends calls to one server as RunBatch does, and leaves at that: a call
// that came late, or to a server that does not have its keys, is not sent again.
// It is for calls that do the work of many, each of which its caller can ask for
// by itself.
func (m *Manager) RunOnce(ctx context.Context, node string, calls []*Call) []error {
	l := m.topology.at(node)
	outcomes := m.sendOnce(ctx, l, calls)
	for i, err := range outcomes {
		outcomes[i] = m.told(l, calls[i], err)
	}
	return outcomes
}

// Answered reports whether err, of a call that was sent once, is what a server
// answered: the connection is whole, and another call may fare better.
func Answered(err error) bool { return isReply(err) }

// Place returns what two keys on one server must share to stand in one call: their
// slot, or 0 where there are none.
func (m *Manager) Place(key string) int {
	if !m.topology.follows() {
		return 0
	}
	return keys.Slot(key)
}

// runAll runs those of the calls that only names, all at once: when slots have
// moved they are most of a batch, and one after the other would take too long.
func (m *Manager) runAll(ctx context.Context, calls []*Call, only []int, outcomes []error) {
	var all sync.WaitGroup
	for _, i := range only {
		all.Go(func() { outcomes[i] = m.Run(ctx, calls[i]) })
	}
	all.Wait()
}

// leadsOn reports whether a call is to be sent once more, on the path of all
// calls: its key is on another server, or the server's clock was misjudged.
func (m *Manager) leadsOn(c *Call, err error) bool {
	if err == nil {
		return c.Status() == Late
	}
	switch judge(err) {
	case moved, redirected, anew:
		return true
	default:
		return false
	}
}

// told is what the caller is told of a call that failed.
func (m *Manager) told(l *lane, c *Call, err error) error {
	switch {
	case err == nil:
		return nil
	case m.closing.Err() != nil:
		return errs.Closed
	case judge(err) == again:
		m.topology.failed(l)
		return explained(err, c.Script)
	default:
		return typed(err, c.Script)
	}
}

// sendOnce sends the calls, once more those of them that the server has no script
// for, and returns what became of each.
func (m *Manager) sendOnce(ctx context.Context, l *lane, calls []*Call) (outcomes []error) {
	outcomes = make([]error, len(calls))
	if missing := m.sendBatch(ctx, l, calls, outcomes, nil); len(missing) > 0 {
		m.sendBatch(ctx, l, calls, outcomes, missing)
	}
	return outcomes
}

// sendBatch sends the calls, or those of them that only names, with their
// sources. It returns which of them the server has no script for.
func (m *Manager) sendBatch(ctx context.Context, l *lane, calls []*Call, outcomes []error, only []int) (missing []int) {
	batch := make([]*request, 0, len(calls))
	at := make([]int, 0, len(calls))
	add := func(i int, full bool) {
		r := m.requests.get()
		r.call, r.full = calls[i], full
		batch = append(batch, r)
		at = append(at, i)
	}
	if only == nil {
		for i := range calls {
			add(i, false)
		}
	}
	for _, i := range only {
		add(i, true)
	}
	left := l.renew(ctx, batch)
	for k, r := range batch {
		i := at[k]
		if left[k] {
			if r.state.Load() == sent {
				calls[i].remember(r)
			}
			outcomes[i] = ctx.Err()
			continue
		}
		calls[i].absorb(r)
		outcomes[i] = r.err
		if r.err != nil && judge(r.err) == unknown {
			missing = append(missing, i)
		}
		m.requests.put(r)
	}
	return missing
}
