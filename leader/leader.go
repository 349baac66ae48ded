// Package leader elects one leader among processes. To lead is to hold a lock, which has the layout of a
// FairMutex in Redis. Next to the lock, the leader stores who it is.
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
// process that only wants to know who leads may call the other methods without Run. Any number of
// goroutines may use one Election.
type Election struct {
	resource resource
	config   config
	err      error // why it cannot be used

	running  atomic.Bool
	finished atomic.Pointer[error] // the error of its own with which the last Run has ended
	current  atomic.Pointer[Term]  // of this value's Run; nil while it does not lead
}

// New returns the election of that name, which is stored at key in Redis. It does no I/O. If an argument
// is wrong, each call on the Election returns the error. defaults are the lease options of the Client.
func New(e *engine.Engine, name, key string, defaults hold.Settings, options ...Option) *Election {
	l := &Election{config: newConfig(defaults, options)}
	l.resource = newResource(e, name, key, &l.config)
	if err := l.config.check(); err != nil {
		l.err = err
	}
	return l
}

// Name returns the name that the election was made with.
func (e *Election) Name() string { return engine.Made(e).resource.Name() }

// Identity returns the name that other processes see for this candidate.
func (e *Election) Identity() string { return engine.Made(e).config.identity }

// IsLeader reports whether this Election's Run leads at this moment: its work runs, and the work's
// context has not ended. It does no I/O. It returns false after the local deadline of the lease. Before
// that deadline nobody else can lead, as long as Redis keeps its data. The answer may be outdated in the
// next instant. So if something must not happen twice, do it in the work, with the work's context and
// token.
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

// Check is for a liveness probe, and does no I/O. It returns an error in two cases, in which the process should be
// restarted. First, the work has not returned, and the end of the term was more than staleFor ago: the error matches
// what ended the term (ErrLost, ErrResigned, ErrClosed, or the error of Run's context). Second, Run has returned an
// error that is not its context's, so that this candidate never leads again: Check returns Run's error. Otherwise Check
// returns nil: before Run begins, while Run leads or campaigns, and after Run has ended because its context ended or
// its work returned nil.
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

// RequestResign asks the present leader, in any process, to resign. The leader's term ends with
// ErrResigned, and the next candidate leads when the leader's work has returned. RequestResign does not
// wait for that. The request is for the leader that RequestResign finds, never for a later one. If
// nobody leads, the error matches ErrNoLeader.
//
// The former leader campaigns again, behind the waiting candidates of its priority. If no other
// candidate waits, the former leader leads again.
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
