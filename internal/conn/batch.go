// Batches of renewals: one pipeline, sent once. Each call in it has an outcome of its own.

package conn

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn/call"
	"github.com/holdfast-go/holdfast/internal/conn/fault"
	"github.com/holdfast-go/holdfast/internal/conn/server"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
)

// RunBatch sends the calls to the server at addr in a pipeline, on the connection kept for renewals. It calls
// answer with the outcome of each call: nil if the script has answered, an error otherwise. ctx bounds the
// try. Each time that soon passes without an answer, copies of the calls are run beside the batch, as any
// other calls; the answer that comes first counts. The caller decides whether to try again; if the connection
// has failed, the next try uses a new one. Batches that are under way at the same time have a connection
// each.
func (m *Manager) RunBatch(ctx context.Context, soon time.Duration, addr string, calls []*call.Call, answer func(i int, err error)) {
	n := m.servers.At(addr)
	outcomes := m.sendPatiently(ctx, soon, n, calls)
	var elsewhere []int
	for i, err := range outcomes {
		if m.leadsOn(calls[i], err) {
			elsewhere = append(elsewhere, i)
			continue
		}
		answer(i, m.told(n, calls[i], err))
	}
	m.runAll(ctx, calls, elsewhere, outcomes) // after the others, so that they need not wait for it
	for _, i := range elsewhere {
		answer(i, outcomes[i])
	}
}

// RunOnce sends calls to the server at addr as RunBatch does, but does not send again a call that
// came late, or that went to a server without its keys. It is for calls that do the work of many:
// after a failure their caller makes a call for each part of that work instead.
func (m *Manager) RunOnce(ctx context.Context, soon time.Duration, addr string, calls []*call.Call) []error {
	n := m.servers.At(addr)
	outcomes := m.sendPatiently(ctx, soon, n, calls)
	for i, err := range outcomes {
		outcomes[i] = m.told(n, calls[i], err)
	}
	return outcomes
}

// Slot returns the slot of key in a cluster, 0 elsewhere. Two keys on one server may be used in
// one call if their slots are equal.
func (m *Manager) Slot(key string) int {
	if !m.servers.Follows() {
		return 0
	}
	return keys.Slot(key)
}

// runAll runs the calls whose indices are in only, all at once. When slots have moved these are
// most of a batch, and running them one after the other would take too long.
func (m *Manager) runAll(ctx context.Context, calls []*call.Call, only []int, outcomes []error) {
	var all sync.WaitGroup
	for _, i := range only {
		all.Go(func() { outcomes[i] = m.Run(ctx, calls[i]) })
	}
	all.Wait()
}

// leadsOn reports whether a call must be sent again, through Run: its key is on another server,
// its connection had gone, or the server's clock was misjudged.
func (m *Manager) leadsOn(c *call.Call, err error) bool {
	if err == nil {
		return c.Status() == call.Late
	}
	if c.Script.Refused(err) {
		return true
	}
	switch fault.Judge(err) {
	case fault.Moved, fault.Redirected, fault.Anew:
		return true
	default:
		return false
	}
}

// told returns the error that the caller gets for the outcome err of a call.
func (m *Manager) told(n *server.Node, c *call.Call, err error) error {
	switch {
	case err == nil:
		return nil
	case m.closing.Err() != nil:
		return errs.Closed
	case fault.Judge(err) == fault.Again:
		m.servers.Failed(n)
		return fault.Explained(err, c.Script.Source())
	default:
		return fault.Typed(err, c.Script.Source())
	}
}

// sendPatiently is SendOnce of the server. Each time that soon has passed without an answer, copies of
// the calls are run beside it, at most mostOutruns times. The first answer ends the rest.
func (m *Manager) sendPatiently(ctx context.Context, soon time.Duration, n *server.Node, calls []*call.Call) (outcomes []error) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	others := make([]outrun, mostOutruns)
	done := make(chan struct{})
	running, stop := context.WithCancel(ctx)
	defer stop()
	begin := time.AfterFunc(soon, func() {
		defer close(done)
		var all sync.WaitGroup
		for i := range others {
			all.Go(func() {
				if others[i].run(running, m, calls); anyAnswered(others[i].outcomes) {
					cut()
				}
			})
			if pause(running, running, soon); running.Err() != nil {
				break
			}
		}
		all.Wait()
	})
	outcomes = n.SendOnce(ctx, calls, m.hush)
	if begin.Stop() {
		return outcomes
	}
	if anyAnswered(outcomes) {
		stop()
	}
	<-done
	for i := range others {
		others[i].merge(calls, outcomes)
	}
	return outcomes
}

// mostOutruns is how many copies of a batch that takes long are run.
const mostOutruns = 3

// outrun is the copies of the calls of a batch that takes long. They run beside it.
type outrun struct {
	calls    []call.Call
	outcomes []error
}

func (o *outrun) run(ctx context.Context, m *Manager, calls []*call.Call) {
	o.calls, o.outcomes = make([]call.Call, len(calls)), make([]error, len(calls))
	only := make([]int, len(calls))
	copies := make([]*call.Call, len(calls))
	for i, c := range calls {
		o.calls[i] = call.Call{
			Script: c.Script, Keys: c.Keys, Args: c.Args,
			Until: c.Until, AnyTime: c.AnyTime, Enough: c.Enough, Replicas: c.Replicas,
		}
		only[i], copies[i] = i, &o.calls[i]
	}
	m.runAll(ctx, copies, only, o.outcomes)
}

// merge adds what the copies have found out to the calls, and to what became of them so far.
func (o *outrun) merge(calls []*call.Call, outcomes []error) {
	for i := range o.calls {
		calls[i].Join(&o.calls[i])
		switch err := outcomes[i]; {
		case err == nil:
		case o.outcomes[i] == nil:
			outcomes[i] = nil
			calls[i].Take(&o.calls[i])
		case !fault.IsReply(err):
			outcomes[i] = o.outcomes[i]
		}
	}
}

// anyAnswered reports whether a server has answered any of the calls for good.
func anyAnswered(outcomes []error) bool {
	return slices.ContainsFunc(outcomes, func(err error) bool { return err == nil || fault.IsReply(err) && fault.Judge(err) == fault.Final })
}
