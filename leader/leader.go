// Package leader elects one leader among candidates, which may be in several processes. A candidate leads
// while it holds a lock. In Redis this lock has the layout of a FairMutex. In addition to the lock, Redis
// stores a record that says who leads.
//
// Programs make an Election with Client.Leader. docs/leader.md shows the states of a candidate.
package leader

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
)

// Election is one candidate in the election of a name. Run makes this candidate campaign and lead. A
// process that only wants to know who leads calls the other methods, and does not call Run. Any number of
// goroutines may use one Election at the same time.
type Election struct {
	resource resource
	config   config
	err      error // why it cannot be used

	running  atomic.Bool
	finished atomic.Pointer[error] // the error of its own with which the last Run has ended
	current  atomic.Pointer[Term]  // of this value's Run; nil while it does not lead
}

// New returns a candidate in the election of the given name. key is the name as Redis stores it. defaults
// are the lease options of the Client. New does no I/O. If an argument or an option is wrong, every method
// that can fail returns the error.
func New(e *engine.Engine, name, key string, defaults hold.Settings, options ...Option) *Election {
	l := &Election{config: newConfig(defaults, options)}
	l.resource = newResource(e, name, key, &l.config)
	if err := l.config.check(); err != nil {
		l.err = err
	}
	return l
}

// Name returns the name of the election, as the program gave it to Client.Leader.
func (e *Election) Name() string { return engine.Made(e).resource.Name() }

// Identity returns the name of this candidate that other processes see. The option Identity sets this
// name.
func (e *Election) Identity() string { return engine.Made(e).config.identity }

// IsLeader reports whether this Election's Run leads at this moment. Run leads while its work runs and the
// context of the work has not ended. IsLeader also returns false after the deadline of the lease on this
// process's clock. Before that deadline nobody else can lead, as long as Redis keeps its data. IsLeader
// does no I/O.
//
// The answer may be outdated as soon as IsLeader has returned. So if something must not happen twice, do
// it in the work, with the work's context and with the token of the Term.
func (e *Election) IsLeader() bool {
	t := engine.Made(e).current.Load()
	return t != nil && t.lasts()
}

// usable returns nil, or why the operation cannot be done.
func (e *Election) usable(op string) error {
	if err := e.engine().Broken(); err != nil {
		return e.failed(op, err) // also of the zero value
	}
	if err := e.resource.Usable(op); err != nil {
		return err
	}
	if e.err != nil {
		return e.failed(op, e.err)
	}
	return nil
}

func (e *Election) failed(op string, err error) error { return errs.Call(op, kind, e.Name(), err) }

func (e *Election) engine() *engine.Engine { return engine.Made(e).resource.Engine }

// Check is for a liveness probe, and does no I/O. Check returns an error in three cases. In the first two
// cases, the process should be restarted:
//
//   - The work has not returned, although its term ended more than staleFor ago. The error matches the
//     reason why the term ended: ErrLost, ErrResigned, ErrPaused, ErrClosed, or the error of Run's context.
//   - Run has returned an error, and Run's context had not ended. This candidate does not lead again
//     without another call of Run. Check returns the error of Run.
//   - An argument or an option of the Election is wrong.
//
// In all other cases Check returns nil: before the first call of Run, while Run campaigns or leads, after
// Run has ended because its context ended, and after Run has ended because the work returned nil.
func (e *Election) Check(staleFor time.Duration) error {
	if err := e.usable("check"); err != nil {
		return err
	}
	if err := e.finished.Load(); err != nil {
		return e.failed("check", fmt.Errorf("run has ended: %w", errs.Bare(*err)))
	}
	t := e.current.Load()
	if t == nil {
		return nil
	}
	over := t.overFor()
	if over == 0 || over <= staleFor {
		return nil
	}
	return e.failed("check", fmt.Errorf("the work goes on %v after its term ended: %w",
		over.Round(time.Millisecond), errs.Within(kind, e.Name(), context.Cause(t.ctx))))
}

// RequestResign asks the present leader, in any process, to resign. The term of this leader ends with
// ErrResigned. When the leader's work has returned, the next candidate leads. RequestResign does not wait
// until the term or the work has ended. The request is only for the term that RequestResign finds in
// Redis, and never ends a later term. If nobody leads, the error matches ErrNoLeader.
//
// The former leader campaigns again, behind the waiting candidates of its priority. If no other candidate
// waits, the former leader leads again.
func (e *Election) RequestResign(ctx context.Context) error {
	const op = "request resignation of"
	info, err := e.ask(ctx, op)
	if err != nil {
		return err
	}
	publish, err := e.engine().Conn.PublishCommand(ctx)
	if err != nil {
		return e.failed(op, errs.Ended(ctx, err))
	}
	call := e.resource.ask(info.Token, publish, "asked by "+e.config.identity)
	if err := e.resource.Run(ctx, op, call); err != nil {
		return err
	}
	return nil // even if that term was over by then: it has ended, as was asked
}
