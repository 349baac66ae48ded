// Waiting in turn: a caller takes its units at once, as a part of the debt, and sleeps until their time.

package limiter

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Wait takes n units, and returns when the caller may use them. Callers of all processes may use their
// units in the order in which their requests reached Redis. Wait sends one request to Redis. Redis
// answers when the units may be used, and Wait sleeps until then. Only a Set can change that time during
// the sleep.
//
// If the units may be used only after ctx's deadline, Wait returns at once and takes nothing. The error
// then matches ErrBusy and contains a BusyError. The field Left of the BusyError says how long the wait
// would have been. If ctx ends while Wait sleeps, the error matches ctx's error and ErrBusy. In that
// case Wait gives its units back if no other caller has taken units since. If another caller has, the
// units are lost, and no other caller waits for a shorter time than before. If the Client begins to close
// during the sleep, by Shutdown or Close, Wait gives its units back in the same way, and the error
// matches ErrClosed. Work that Shutdown waits for goes on waiting.
//
// If Redis does not answer before ctx's deadline, the error matches ErrUnavailable, unless
// OnUnavailable(limiter.Allow) allows the call. If n is less than 1 or greater than the burst, the error
// matches ErrBadArgument.
func (l *Limiter) Wait(ctx context.Context, n int) error {
	if err := l.check(n); err != nil {
		return l.fail("wait for", err)
	}
	if err := l.engine.Begin(); err != nil { // Shutdown and Close wait until what a turn has taken is given back
		return l.fail("wait for", err)
	}
	defer l.engine.Done()
	ctx, span := l.engine.Telemetry.Acquire(ctx, kind, l.name)
	started := time.Now()
	p, err := l.enter(ctx, int64(n), patienceOf(ctx))
	p.closing = hold.EndOfWaits(ctx, l.engine)
	if p.kind = span.Kind(); err == nil {
		err = p.sleep(ctx)
	}
	outcome := telemetry.OutcomeOf(err, telemetry.OutcomeAcquired)
	if err != nil {
		err = l.fail("wait for", errs.Ended(ctx, err))
	}
	span.End(telemetry.Acquired{Outcome: outcome, Attempts: p.attempts, Waited: time.Since(started), Err: err})
	return err
}

// patienceOf returns how long ctx allows to wait.
func patienceOf(ctx context.Context) time.Duration {
	if end, ends := ctx.Deadline(); ends {
		return max(time.Until(end), 0)
	}
	return longest
}

// turn is units that were taken, and their time.
type turn struct {
	limiter  *Limiter
	id       string // "": nothing was taken, since Redis cannot be reached
	units    int64
	taken    int64 // how many were, with these
	rev      int64 // of the rate by which at was found
	kind     telemetry.Kind
	at       time.Time
	attempts int
	closing  context.Context // its end ends the wait
}

// enter takes n units, if they come within patience.
func (l *Limiter) enter(ctx context.Context, n int64, patience time.Duration) (turn, error) {
	q := request{script: takeScript, id: newID(), units: n, least: n, patience: patience}
	a, err := l.take(ctx, &q)
	p := turn{limiter: l, attempts: q.attempts}
	switch {
	case err != nil && l.passes(err):
		return p, nil
	case err != nil:
		return p, err
	case a.status != conn.Done:
		return p, late(a.until(n))
	}
	p.id, p.units, p.taken, p.rev, p.at = q.id, n, a.taken, a.rate.rev, a.at.Add(a.wait())
	l.family.looks(l)
	return p, nil
}

// sleep waits for the turn. If ctx ends first, or the Client shuts down or closes, it gives the units back.
func (p *turn) sleep(ctx context.Context) error {
	var err error
	for left := time.Until(p.at); err == nil && p.id != "" && left > 0; left = time.Until(p.at) {
		if left > heed {
			err = p.watch(ctx)
		} else {
			err = p.nap(ctx, left)
		}
	}
	if err != nil {
		p.limiter.settle(p.id, p.units, 0)
	}
	return err
}

// nap sleeps for d.
func (p *turn) nap(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errs.Busy, ctx.Err())
	case <-p.closing.Done():
		return context.Cause(p.closing)
	}
}

// Reservation stands for units that Reserve has taken for a later time. A program does not have to
// release a Reservation. Cancel gives the units back.
type Reservation struct{ turn turn }

// Reserve takes n units, and returns without waiting until they may be used. The returned Reservation
// says when the caller may use the units. A later Set does not change that time.
//
// If Redis does not answer within 3 s, or before ctx's deadline, the error matches ErrUnavailable,
// unless OnUnavailable(limiter.Allow) allows the call. If n is less than 1 or greater than the burst,
// the error matches ErrBadArgument. If the units may be used only after more than 366 days, the error
// matches ErrBusy.
func (l *Limiter) Reserve(ctx context.Context, n int) (*Reservation, error) {
	if err := l.check(n); err != nil {
		return nil, l.fail("reserve from", err)
	}
	ctx, cancel := engine.Bounded(ctx)
	defer cancel()
	p, err := l.enter(ctx, int64(n), longest)
	if err != nil {
		return nil, l.fail("reserve from", errs.Ended(ctx, err))
	}
	return &Reservation{p}, nil
}

// Delay returns how long the caller must wait before it may use the reserved units. Delay returns 0 if
// the caller may use them now.
func (r *Reservation) Delay() time.Duration {
	if r == nil {
		return 0
	}
	return max(time.Until(r.turn.at), 0)
}

// Cancel gives the reserved units back, if no other caller has taken units since Reserve took these. If
// another caller has, the reserved units are lost, and no other caller waits for a shorter time than
// before. A second Cancel does nothing.
//
// Cancel goes on even if ctx is cancelled. If Redis does not answer within 3 s, Cancel returns an error
// that matches ErrUnavailable, and goes on trying in the background.
func (r *Reservation) Cancel(ctx context.Context) error {
	if r == nil || r.turn.id == "" {
		return nil
	}
	p := &r.turn
	l := p.limiter
	if err := l.engine.Begin(); err != nil {
		return l.fail("give back to", err)
	}
	defer l.engine.Done()
	ctx, cancel := engine.Bounded(context.WithoutCancel(ctx))
	defer cancel()
	if err := l.engine.Conn.Run(ctx, l.giveBack(p.id, p.units, false)); err != nil {
		l.settle(p.id, p.units, 0)
		return l.fail("give back to", errs.Ended(ctx, err))
	}
	return nil
}
