package latch

import (
	"context"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Wait waits until the count is zero. It returns at once if it is, or if the latch
// is not set.
//
// It waits for the generation that it found when it was called: if the latch comes
// to zero and is set again before it could look, it returns all the same. If the
// latch is deleted or runs out while it waits, the error matches ErrDeleted; if Redis
// has lost its data meanwhile, or the process stood still for so long that Redis has
// forgotten the generation (a hundred generations, or a day), ErrUnknown. When ctx ends
// first, the error matches ctx's and ErrBusy. Transient errors of Redis are retried until
// ctx ends; ErrWrongType, ErrDenied and the like are returned at once.
//
// Redisson keeps no generations. A latch that a Java process has counted down to
// zero and set again before this one looked counts as still open, and one that it
// has deleted as zero.
func (l *Latch) Wait(ctx context.Context) error {
	if l.err != nil {
		return l.fail("wait for", l.err)
	}
	ctx, span := l.engine.Telemetry.Acquire(ctx, kind, l.name)
	w := wait{latch: l}
	err := w.run(ctx)
	outcome := telemetry.OutcomeOf(err, telemetry.OutcomeAcquired) // whatever the cause of ctx is
	if err != nil {
		err = l.fail("wait for", errs.Ended(ctx, err))
	}
	span.End(telemetry.Acquired{
		Outcome:  outcome,
		Attempts: w.attempts,
		Waited:   w.waited,
		Err:      err,
	})
	return err
}

// What look.lua answers.
const (
	open = iota
	zero
	deleted
	forgotten
)

// wait is one Wait under way.
type wait struct {
	latch      *Latch
	generation int64 // 0 until it is known

	attempts int
	waited   time.Duration
}

func (w *wait) run(ctx context.Context) error {
	v, err := w.look(ctx)
	if err != nil || v.Granted {
		return err
	}
	l := w.latch
	sharded, err := l.engine.Conn.Sharded(ctx)
	if err != nil {
		return err
	}
	started := time.Now()
	waited, err := l.engine.Wait(ctx, engine.Waiting{
		Kind: kind,
		// A line for each generation, so that what its head finds holds for all who
		// stand in it. No name begins so.
		Key:     "holdfast_latch:" + strconv.FormatInt(w.generation, 10) + ":" + l.at.Count,
		Channel: l.channel(sharded),
		Grant:   engine.Common,
		Try:     w.look,
	})
	if waited {
		w.waited = time.Since(started)
	}
	return err
}

// look asks how the generation stands.
func (w *wait) look(ctx context.Context) (engine.Verdict, error) {
	l := w.latch
	call := &conn.Call{
		Script: lookScript,
		Keys:   []string{l.at.Count, l.at.Generations},
		Args:   []any{w.generation},
	}
	err := l.engine.Conn.Run(ctx, call)
	w.attempts += call.Attempts
	if err != nil {
		return engine.Verdict{}, err
	}
	switch call.Status() {
	case open:
		w.generation = call.Int(2)
		return engine.Verdict{For: time.Duration(call.Int(3)) * time.Millisecond}, nil
	case deleted:
		return engine.Verdict{}, errs.Deleted
	case forgotten:
		return engine.Verdict{}, errs.Unknown
	default:
		return engine.Verdict{Granted: true}, nil
	}
}
