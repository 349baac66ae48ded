// Observing who leads.

package leader

import (
	"context"
	"iter"
	"strconv"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Observe returns who leads: first the present leader, and then the new leader after each change. If
// nobody leads, Observe returns the zero Info, for which Leads is false. If the leader changes faster than
// Observe can ask Redis, Observe leaves out some leaders, and perhaps the times in which nobody led.
// Observe never goes back to an older term than the newest term that it has returned. If Redis names the
// leader of such an older term, Observe returns the zero Info, even if Redis has lost its data in the
// meantime.
//
// The sequence ends when ctx ends or when the Client is closed. If the name or an option is wrong, Observe
// logs the error, and the sequence ends at once. If Redis refuses to say who leads, Observe logs the
// refusal, and asks Redis again every second. At each change Redis sends a message, so that Observe
// notices the change at once. If the message is lost, Observe notices the change within 1.25 s, because
// the Client also polls Redis. All observers of one name in a Client share one subscription and one poll.
func (e *Election) Observe(ctx context.Context) iter.Seq[Info] {
	return func(yield func(Info) bool) {
		if err := e.usable("observe"); err != nil {
			if made := e.engine(); made != nil && made.Log != nil {
				made.Log.Warn("holdfast: an election cannot be observed", "error", errs.Plain(err))
			}
			return
		}
		o := &observer{election: e, kind: e.engine().Telemetry.Kind(watchKind, e.Name())}
		for o.next(ctx) == nil {
			if !yield(o.shown) {
				return
			}
		}
	}
}

// observer is one Observe under way.
type observer struct {
	election *Election
	kind     telemetry.Kind // what is measured of it
	begun    bool
	shown    Info  // what was returned last, once begun
	newest   int64 // the token of the newest term that was returned
	found    Info  // what the last look has found
}

// next waits until the leader is another one than the observer has shown. The first call looks
// once, and does not wait.
func (o *observer) next(ctx context.Context) error {
	err := await(ctx, o.election, "an observer cannot see who leads", func() error {
		for {
			if err := o.look(ctx); err != nil {
				return err
			}
			if !o.begun || o.changed() {
				return nil
			}
			if err := o.wait(ctx); err != nil {
				return err
			}
		}
	})
	if err != nil {
		return err
	}
	o.begun, o.shown = true, o.found
	o.newest = max(o.newest, o.found.Token)
	return nil
}

// look asks who leads. A leader of an older term than one that was seen is nobody.
func (o *observer) look(ctx context.Context) error {
	found, err := o.election.look(ctx)
	if err != nil {
		return err
	}
	if found.Token < o.newest {
		found = Info{}
	}
	o.found = found
	return nil
}

func (o *observer) changed() bool { return o.found.Token != o.shown.Token }

// wait waits until the leader has changed. Observers that have seen the same share one line.
func (o *observer) wait(ctx context.Context) error {
	at := o.election.resource.at
	_, err := o.election.engine().Lines.Wait(ctx, &line.Want{
		Kind:    o.kind,
		Key:     at.Record + " seen " + strconv.FormatInt(o.shown.Token, 10) + " " + strconv.FormatInt(o.newest, 10),
		Channel: at.Changes,
		Grant:   line.Common,
		Asker:   o,
	})
	return err
}

// Try implements line.Asker.
func (o *observer) Try(ctx context.Context, _ line.Ask) (line.Answer, error) {
	if err := o.look(ctx); err != nil {
		return line.Answer{}, err
	}
	held := line.NoKnownEnd
	if o.found.Leads() {
		held = line.HeldByTTL(o.found.Left) // a leader that dies is gone when its lease is over
	}
	return line.Answer{Granted: o.changed(), Held: held}, nil
}
