// Run: campaign, lead, and campaign again.

package leader

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	pauses "github.com/holdfast-go/holdfast/internal/pause"
	"github.com/holdfast-go/holdfast/lease"
)

// Run campaigns until this candidate leads, and then calls work. After the work has returned, Run
// campaigns again. Run goes on in this way until ctx ends, or until the work returns nil while its term
// lasts. In detail:
//
//   - If the work returns nil while its term lasts, Run gives the lead up, and returns nil. If giving up
//     the lead fails, Run returns an error instead of nil.
//   - If the work returns an error while its term lasts, Run logs the error, gives the lead up, and
//     campaigns again a second later.
//   - If the work returns after its term has ended, Run ignores the error that the work returns, and
//     campaigns again. Run does so at once, or a second later if the term lasted less than a second.
//   - If ctx ends, Run returns an error that matches ctx's error. The error also matches the error of the
//     work, if the work has returned an error.
//
// A term can end before its work has returned. The cause of the work's context then matches ErrLost if the
// lead is lost, and ErrPaused if the name is paused by Client.Pause. The cause matches ErrResigned after
// Resign, RequestResign, Preempt or MaxTerm, and if the work has not called Alive in time. A term also
// ends when ctx ends or when the Client is closed.
//
// The work's context is derived from ctx, and ends before another candidate can lead. Run gives the lead
// up only after the work has returned. So nobody else can lead while the work runs, unless the lease is
// lost. If the work ignores the end of its context, the other candidates go on waiting. If the work has
// not returned when a whole lease has passed since the end of the term, Run logs that, and Check can
// report it. If the work panics, Run gives the lead up, and the panic goes on.
//
// If Redis returns a transient error, Run tries again until ctx ends. After ErrNotReplicated, Run
// campaigns again a second later. While the name is paused by Client.Pause, Run waits. An operator can
// mend some errors: ErrOutOfMemory, ErrDenied, or a full disk of Redis. Run logs such an error, and
// campaigns again a second later. If further campaigns fail too, the pauses between them become longer, up
// to 5 s. Every other error, such as ErrClosed, ErrWrongType or ErrBadArgument, ends Run. Run then returns
// the error, and Check also returns it from then on.
//
// While one call of Run goes on, a second call of Run on the same Election fails with ErrBadArgument.
// Before you close the Client, end ctx and wait until Run has returned. Close does not give the lead up,
// so after Close alone the next candidate waits until the lease is over.
func (e *Election) Run(ctx context.Context, work func(ctx context.Context, term *Term) error) error {
	const op = "lead"
	if err := e.usable(op); err != nil {
		return err
	}
	if work == nil {
		return e.failed(op, fmt.Errorf("no work: %w", errs.BadArgument))
	}
	if !e.running.CompareAndSwap(false, true) {
		return e.failed(op, fmt.Errorf("another Run of it goes on: %w", errs.BadArgument))
	}
	defer e.running.Store(false)
	e.finished.Store(nil)
	return e.run(ctx, work)
}

func (e *Election) run(ctx context.Context, work func(context.Context, *Term) error) error {
	failures := 0 // campaigns in a row
	for {
		t, err := e.campaign(ctx)
		var out outcome
		if err == nil {
			failures = 0
			out = t.lead(ctx, work)
		} else {
			failures++
			out = e.notElected(ctx, err, failures)
		}
		if out.over {
			if !out.done && ctx.Err() == nil {
				e.finished.Store(&out.err)
			}
			return out.err
		}
		if out.pause > 0 && engine.Sleep(ctx, out.pause) != nil {
			return e.ended(ctx, out.err)
		}
	}
}

// outcome is how one campaign, or one term, has ended.
type outcome struct {
	over  bool          // Run returns err
	done  bool          // the work has ended it
	err   error         // of the work, or of the campaign
	pause time.Duration // otherwise: how long to wait before the next campaign
}

// again is how long Run waits before it campaigns again after a failure. The pause doubles with each
// campaign in a row that fails, up to rarely. Each is less by up to a tenth.
const (
	again  = time.Second
	rarely = 5 * time.Second
)

// pause returns the pause after so many failures in a row.
func pause(failures int) time.Duration {
	d := min(again<<min(failures-1, 3), rarely)
	return d - rand.N(d/10)
}

// ended returns the error of a Run whose ctx has ended. err is that of the campaign or of the work, or nil.
func (e *Election) ended(ctx context.Context, err error) error {
	end := errs.Ended(ctx, ctx.Err())
	switch {
	case errors.Is(err, ctx.Err()):
		end = errs.Ended(ctx, err)
	case err == nil, errors.Is(err, context.Cause(ctx)):
	default:
		end = fmt.Errorf("%w; %w", err, end)
	}
	return e.failed("lead", end)
}

// notElected decides what follows from a campaign that has failed.
func (e *Election) notElected(ctx context.Context, err error, failures int) outcome {
	switch {
	case errors.Is(err, errs.Lost):
		return outcome{} // it was granted, and the answer came too late
	case ctx.Err() != nil:
		return outcome{over: true, err: e.ended(ctx, err)}
	case errors.Is(err, errs.Closed):
		return outcome{over: true, err: e.failed("lead", err)}
	case errors.Is(err, errs.Paused):
		return e.whilePaused(ctx, err)
	case errors.Is(err, errs.NotReplicated):
		failures = 1
		fallthrough
	case conn.Mendable(err):
		e.warn("holdfast: a campaign failed, and begins again", err)
		return outcome{pause: pause(failures)}
	default:
		return outcome{over: true, err: e.failed("lead", err)}
	}
}

// whilePaused waits until the name is not paused any more. The next campaign begins then.
func (e *Election) whilePaused(ctx context.Context, why error) outcome {
	key := e.resource.pause
	e.warn("holdfast: nobody leads while the name is paused", why)
	p, err := pauses.Look(ctx, e.engine(), key)
	if err == nil {
		err = pauses.Wait(ctx, e.engine(), key, p)
	}
	if err != nil {
		return e.notElected(ctx, err, 1)
	}
	return outcome{}
}

func (e *Election) warn(what string, err error) {
	e.engine().Log.Warn(what, "kind", kind, "name", engine.LogName(e.Name()),
		"identity", e.config.identity, "error", errs.Plain(err))
}

// campaign waits until this candidate is elected, and writes to Redis who leads now. It returns the
// term, which has begun.
func (e *Election) campaign(ctx context.Context) (*Term, error) {
	publish, err := e.engine().Conn.PublishCommand(ctx)
	if err != nil {
		return nil, err
	}
	q := hold.Request{Engine: e.engine(), Resource: &e.resource, Settings: e.config.hold, Afresh: true}
	l, err := q.Acquire(ctx)
	if err != nil {
		return nil, errs.Bare(err)
	}
	t := e.term(ctx, (*lease.Lease)(l), publish)
	leads, err := t.tell(t.ctx)
	if leads {
		return t, nil
	}
	if err == nil || t.ctx.Err() != nil && ctx.Err() == nil && !errors.Is(err, errs.Paused) {
		// Redis does not have it any more; or the lease, or the Client, has ended meanwhile.
		err = errs.Lost
		if errors.Is(l.Err(), errs.Closed) {
			err = errs.Closed
		}
	}
	t.end(err)
	_ = l.Release(ctx) // there is nobody to whom its outcome would matter
	return nil, err
}

// term returns the term under that lease, which has not begun yet.
func (e *Election) term(ctx context.Context, l *lease.Lease, publish string) *Term {
	t := &Term{
		election: e,
		lease:    l,
		publish:  publish,
		most:     e.config.maxTerm,
		returned: make(chan struct{}),
		beat:     make(chan struct{}, 1),
	}
	if t.most > 0 {
		t.most -= rand.N(t.most/10 + 1)
	}
	t.ctx, t.end = context.WithCancelCause(l.Context(ctx))
	return t
}

// lead runs the work, and gives the lead up when the work has returned.
func (t *Term) lead(ctx context.Context, work func(context.Context, *Term) error) (out outcome) {
	began := time.Now()
	listening, stop := context.WithCancel(t.ctx)
	t.watchers.Go(t.watch)
	t.watchers.Go(func() { t.listen(listening) })
	t.election.current.Store(t)
	var released error
	lasted := false
	finish := func() {
		lasted = t.ctx.Err() == nil
		close(t.returned)
		stop()
		t.watchers.Wait()
		t.election.current.Store(nil)
		t.end(errs.Released)
		released = t.lease.Release(ctx)
	}
	var err error
	func() {
		defer finish() // even if the work panics, or ends its goroutine
		err = work(t.ctx, t)
	}()
	if lasted && err == nil {
		return t.election.done(released)
	}
	return t.broken(ctx, err, lasted, time.Since(began))
}

// done returns the outcome of a term whose work has returned nil. released is the error of its release.
func (e *Election) done(released error) outcome {
	if released != nil {
		released = e.failed("lead", errs.Bare(released))
	}
	return outcome{over: true, done: true, err: released}
}

// broken returns the outcome of a term that took that long. lasted says that its work returned err
// while the term lasted; otherwise the term ended before its work.
func (t *Term) broken(ctx context.Context, err error, lasted bool, took time.Duration) outcome {
	e := t.election
	switch {
	case ctx.Err() != nil:
		return outcome{over: true, err: e.ended(ctx, err)}
	case errors.Is(context.Cause(t.ctx), errs.Closed):
		return outcome{over: true, err: e.failed("lead", errs.Closed)}
	case !lasted && took >= again:
		return outcome{}
	case !lasted:
		return outcome{pause: pause(1)} // terms that all end at once would keep Redis busy
	default:
		e.warn("holdfast: the work of a term failed; the next campaign begins", err)
		return outcome{pause: pause(1), err: err}
	}
}
