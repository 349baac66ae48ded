// A batch of renewals is sent once.

package server

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/internal/conn/call"
	"github.com/holdfast-go/holdfast/internal/conn/fault"
)

// SendOnce sends the calls and returns the outcome of each. If the server does not have a call's script, or
// refuses to be sent it, SendOnce sends that call again: with the source, or by the script's hash. hush
// reports which scripts go in their quiet form.
func (n *Node) SendOnce(ctx context.Context, calls []*call.Call, hush func(*call.Script) bool) (outcomes []error) {
	outcomes = make([]error, len(calls))
	otherwise := n.sendBatch(ctx, calls, hush, outcomes, nil)
	if ctx.Err() == nil && !slices.ContainsFunc(outcomes, func(err error) bool { return !hasHungUp(err) }) {
		otherwise = n.sendBatch(ctx, calls, hush, outcomes, nil) // an idle connection had been closed, most likely
	}
	if len(otherwise) > 0 {
		n.sendBatch(ctx, calls, hush, outcomes, otherwise)
	}
	return outcomes
}

// hasHungUp reports whether a call failed because the other end had closed the connection. The call may
// have run.
func hasHungUp(err error) bool {
	if errors.Is(err, fault.ErrSpent) {
		return true
	}
	return err != nil && !fault.IsReply(err) && !fault.IsTimeout(err) && !errors.As(err, new(fault.Unsent)) && !errors.As(err, new(fault.Unreached)) && fault.Judge(err) != fault.Final
}

// sendBatch sends all of the calls, or, if only is not nil, the calls whose indices are in only. It
// returns the indices of the calls whose scripts must be sent in the other form: whole in place of
// by their hashes, or the reverse.
func (n *Node) sendBatch(ctx context.Context, calls []*call.Call, hush func(*call.Script) bool, outcomes []error, only []int) (otherwise []int) {
	batch := make([]*request, 0, len(calls))
	at := make([]int, 0, len(calls))
	add := func(i int) {
		r := n.requests.get()
		r.call, r.Quiet = calls[i], hush(calls[i].Script)
		r.Full = !n.learned.has(r.script(), n.gate.era.Load())
		batch = append(batch, r)
		at = append(at, i)
	}
	if only == nil {
		for i := range calls {
			add(i)
		}
	}
	for _, i := range only {
		add(i)
	}
	left := n.renew(ctx, batch)
	for k, r := range batch {
		i := at[k]
		if left[k] {
			r.leave()
			outcomes[i] = ctx.Err()
			continue
		}
		r.settle()
		if outcomes[i] = r.err; ctx.Err() != nil && errors.Is(r.err, net.ErrClosed) {
			outcomes[i] = ctx.Err() // its end cut the connection
		}
		n.Tell(ctx, calls[i], r.messages())
		if n.learned.from(r, n.gate.era.Load()) {
			otherwise = append(otherwise, i)
		}
		n.requests.put(r)
	}
	return otherwise
}

// renew sends the requests once, on the connection for renewals. If that cannot be made, they
// go on the connections of the callers: a failure to make a new connection says nothing about
// the others. renew reports which requests were left behind when ctx ended: they are on their
// way or in the queue, and must not be used again.
func (n *Node) renew(ctx context.Context, batch []*request) (left []bool) {
	left = make([]bool, len(batch))
	w, err := n.takeRenewals(ctx)
	switch {
	case err == nil:
		w.run(ctx, batch...)
		n.renewals.giveRenewals(w)
	case ctx.Err() == nil && n.callers.queueAll(batch):
		for i, r := range batch {
			left[i] = !n.callers.await(ctx, r, nil)
		}
	default:
		for _, r := range batch {
			r.err = fault.Unsent{Err: err}
		}
	}
	return left
}

// learned has the scripts that renewals send by their hashes: those that the server has answered since
// it last failed. Others are sent whole. Where the process hardly gets to run, a second round, for a
// script that the server did not have, takes as long as the first, and the lease may end meanwhile.
type learned struct {
	mu      sync.Mutex // guards what follows
	era     int64      // of the gate
	scripts []*call.Script
}

func (l *learned) has(s *call.Script, era int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.era == era && slices.Contains(l.scripts, s)
}

// from takes in the answer to a request. It reports whether the script must be sent in the other form now:
// whole, because the server does not have it; or by its hash, because the server refuses EVAL, and somebody else
// may have loaded it.
func (l *learned) from(r *request, era int64) (otherwise bool) {
	unloaded := r.err != nil && fault.Judge(r.err) == fault.Unknown
	refused := r.Full && fault.RefusesEval(r.err)
	if r.err != nil && !unloaded && !refused {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.era != era {
		l.era, l.scripts = era, nil
	}
	s := r.script()
	l.scripts = slices.DeleteFunc(l.scripts, func(other *call.Script) bool { return other == s })
	if !unloaded {
		l.scripts = append(l.scripts, s)
	}
	return unloaded || refused
}
