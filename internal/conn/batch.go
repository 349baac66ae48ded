package conn

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// RunBatch sends the calls to one server in a pipeline, once, on a connection
// kept for renewals, and returns what became of each: nil where the script has
// answered, an error otherwise. ctx bounds the try. The caller decides about
// another try; the next one goes out on a new connection if this one failed.
//
// For one server only one batch may be under way at a time.
func (m *Manager) RunBatch(ctx context.Context, node string, calls []*Call) []error {
	outcomes := make([]error, len(calls))
	l := m.topology.at(node)
	missing := l.sendBatch(ctx, calls, outcomes, nil)
	if len(missing) > 0 {
		l.sendBatch(ctx, calls, outcomes, missing)
	}
	for i, err := range outcomes {
		outcomes[i] = m.settle(ctx, l, calls[i], err)
	}
	return outcomes
}

// sendBatch sends the calls, or those of them that only names, with their
// sources. It returns which of them the server has no script for.
func (l *lane) sendBatch(ctx context.Context, calls []*Call, outcomes []error, only []int) (missing []int) {
	batch := make([]*request, 0, len(calls))
	at := make([]int, 0, len(calls))
	add := func(i int, full bool) {
		batch = append(batch, &request{call: calls[i], full: full})
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
	l.renewals.run(ctx, batch...)
	for k, r := range batch {
		i := at[k]
		calls[i].absorb(r)
		outcomes[i] = r.err
		if r.err != nil && judge(r.err) == unknown {
			missing = append(missing, i)
		}
	}
	return missing
}

// settle follows a call whose key is, or is on its way to, another server, and
// types the error of one that failed.
func (m *Manager) settle(ctx context.Context, l *lane, c *Call, err error) error {
	if err == nil {
		if c.Status() == Late {
			return m.Run(ctx, c)
		}
		return nil
	}
	switch judge(err) {
	case moved, redirected:
		return m.Run(ctx, c)
	case again:
		if m.closing.Err() != nil {
			return errs.Closed
		}
		m.topology.failed(l)
		return err
	default:
		return typed(err)
	}
}
