// From the renewal scheduler to the connection manager.

package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/renewal"
)

// Renewable is a task that is renewed by a script.
type Renewable interface {
	renewal.Task
	// Renewal returns the call that renews, or nil if there is nothing to renew
	// any more.
	Renewal() *conn.Call
	// Renewed takes in what became of it; call is nil if it was not sent.
	Renewed(call *conn.Call, err error)
}

// sender carries the scheduler's batches to Redis.
type sender struct{ e *Engine }

func (s sender) Node(ctx context.Context, key string) (string, error) {
	return s.e.Conn.Node(ctx, key)
}

func (s sender) Send(ctx context.Context, node string, batch []renewal.Task) {
	tasks := make([]Renewable, 0, len(batch))
	calls := make([]*conn.Call, 0, len(batch))
	for _, t := range batch {
		task := t.(Renewable)
		if call := task.Renewal(); call != nil {
			tasks, calls = append(tasks, task), append(calls, call)
		}
	}
	if len(calls) == 0 {
		return
	}
	started, left := time.Now(), len(calls)
	s.e.Conn.RunBatch(ctx, node, calls, func(i int, err error) {
		if left--; left == 0 {
			s.e.Telemetry.RenewalBatch(time.Since(started), len(calls))
		}
		tasks[i].Renewed(calls[i], err)
	})
}

func (s sender) Fail(t renewal.Task, err error) { t.(Renewable).Renewed(nil, err) }
