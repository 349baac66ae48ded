// A leader waits to be asked to resign, and keeps its record in Redis.

package leader

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// tell writes to Redis who leads, and reads whether somebody asks the leader to resign. If the lead
// is no longer this term's, it reports false. If the name is paused, the error matches errs.Paused.
func (t *Term) tell(ctx context.Context) (leads bool, err error) {
	call := t.election.resource.tell(t.owner(), t.publish, t.Token(), t.since)
	call.Until = t.lease.Deadline()
	if err := t.election.engine().Conn.Run(ctx, call); err != nil {
		return false, err
	}
	switch call.Status() {
	case paused:
		return false, t.election.failed("lead", pausedIn(call))
	case conn.Done:
	default:
		return false, nil
	}
	since, asked := toldIn(call)
	if t.since == 0 {
		t.since = since
	}
	if asked != "" {
		t.resign(asked)
	}
	return true, nil
}

// Try implements line.Asker for a term that waits until somebody asks its leader to resign. The answer is
// "granted" when the term has ended.
func (t *Term) Try(ctx context.Context, _ line.Ask) (line.Answer, error) {
	switch leads, err := t.tell(ctx); {
	case errors.Is(err, errs.Paused):
		t.end(err)
	case err != nil && !errors.Is(err, errs.Lost):
		return line.Answer{}, err
	case err == nil && !leads:
		// The renewal alone decides whether the lead is lost, so it must not wait for its time.
		lead := t.election.resource.Key()
		t.election.engine().Renewals.Doubt(lead, func(key string) bool { return key == lead })
	}
	return line.Answer{Granted: t.ctx.Err() != nil, Held: line.NoKnownEnd}, nil
}

// listen waits to be asked to resign. It runs until the term has ended, or its work has returned.
func (t *Term) listen(ctx context.Context) {
	e := t.election
	// The lease has the group of the name. If the user's function were asked again and blocked, the lead
	// would never be given up.
	kind := telemetry.Kind{Name: watchKind, Group: (*hold.Lease)(t.lease).Group()}
	_ = await(ctx, e, "the leader cannot hear that it is asked to resign", func() error {
		_, err := e.engine().Lines.Wait(ctx, &line.Want{
			Kind:    kind,
			Key:     e.resource.at.Record + " asked " + t.owner(),
			Channel: e.resource.at.Changes,
			Grant:   line.Common,
			Asker:   t,
		})
		return err
	})
}

// refusedPause is how long nobody asks Redis again after it has refused for a reason that another
// call would meet too, such as missing rights.
const refusedPause = time.Second

// await calls wait until it returns nil, ctx ends or the Client closes. The first failure is logged.
func await(ctx context.Context, e *Election, what string, wait func() error) error {
	logged := false
	for {
		err := wait()
		if err == nil || ctx.Err() != nil || errors.Is(err, errs.Closed) {
			return err
		}
		if !logged {
			logged = true
			e.engine().Log.Warn("holdfast: "+what, "kind", kind, "name", engine.LogName(e.Name()), "error", errs.Plain(err))
		}
		if err := engine.Sleep(ctx, refusedPause); err != nil {
			return err
		}
	}
}
