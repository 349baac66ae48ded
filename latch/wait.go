// Waiting for one generation of a latch.

package latch

import (
	"context"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Wait waits until the count is 0. If the count is already 0, or if the latch is not set, Wait returns nil
// at once.
//
// Each time that somebody sets the latch, a new generation begins. Wait waits for the generation that it
// finds when it is called. If the count of that generation becomes 0, Wait returns nil, even if somebody
// sets the latch again before Wait has asked Redis again. If somebody deletes the latch during the wait,
// or if the latch expires, the error matches ErrDeleted. If Redis loses its data during the wait, the
// error matches ErrUnknown. The error also matches ErrUnknown if this process is suspended for so long
// that Redis has forgotten the generation. Redis forgets a generation after a day, or after a hundred
// further generations. If ctx ends first, the error matches ctx's error. The error also matches ErrBusy if
// Redis had answered that the count was not 0. If Redis returns a transient error, Wait tries again until
// ctx ends. Wait returns any other error, such as ErrWrongType or ErrDenied, at once.
//
// Redisson has no generations. If Java processes count a latch down to 0 and set it again before Wait has
// asked Redis again, Wait goes on waiting. If a Java process deletes a latch, Wait returns nil, as if the
// count had become 0.
func (l *Latch) Wait(ctx context.Context) error {
	if err := l.usable(); err != nil {
		return l.fail("wait for", err)
	}
	ctx, span := l.engine.Telemetry.Acquire(ctx, kind, l.name)
	w := &wait{latch: l, kind: span.Kind()}
	err := w.run(ctx)
	outcome := telemetry.OutcomeOf(err, telemetry.OutcomeAcquired) // without the cause of ctx
	if err != nil {
		err = l.fail("wait for", errs.Ended(ctx, l.foreign(ctx, err)))
	}
	span.End(telemetry.Acquired{
		Outcome:  outcome,
		Attempts: w.attempts,
		Waited:   w.waited,
		Err:      err,
	})
	return err
}

// wait is one call of Wait under way.
type wait struct {
	latch      *Latch
	kind       telemetry.Kind // what is measured of it
	generation int64          // 0 until it is known

	attempts int
	waited   time.Duration
}

func (w *wait) run(ctx context.Context) error {
	answer, err := w.Try(ctx, line.Ask{})
	if err != nil || answer.Granted {
		return err
	}
	l := w.latch
	sharded, err := l.engine.Conn.Sharded(ctx)
	if err != nil {
		return err
	}
	started := time.Now()
	out, err := l.engine.Lines.Wait(ctx, &line.Want{
		Kind: w.kind,
		// There is a line for each generation, so that what its head finds holds for all in the
		// line. No name begins like this.
		Key:     "holdfast_latch:" + strconv.FormatInt(w.generation, 10) + ":" + l.at.Count,
		Channel: l.channel(sharded),
		Grant:   line.Common,
		Asker:   w,
	})
	if out.Waited {
		w.waited = time.Since(started)
	}
	return err
}

// Try implements line.Asker: it asks for the state of the generation.
func (w *wait) Try(ctx context.Context, _ line.Ask) (line.Answer, error) {
	l := w.latch
	call := &conn.Call{
		Script: lookScript,
		Keys:   []string{l.at.Count, l.at.Generations},
		Args:   []any{w.generation},
	}
	err := l.engine.Conn.Run(ctx, call)
	w.attempts += call.Attempts
	if err != nil {
		return line.Answer{}, err
	}
	switch call.Status() {
	case open:
		generation, held := openIn(call)
		w.generation = generation
		return line.Answer{Held: held}, nil
	case deleted:
		return line.Answer{}, line.ForAll(errs.Deleted)
	case forgotten:
		return line.Answer{}, line.ForAll(errs.Unknown)
	default:
		return line.Answer{Granted: true}, nil
	}
}
