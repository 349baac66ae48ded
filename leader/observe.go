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

// Observe returns who leads: first the present leader, and then each change. The zero Info, for which
// Leads is false, says that nobody leads. If leaders change faster than Observe can ask Redis, it leaves
// out some of them, and perhaps the times in which nobody led. If Redis names a leader with an older
// term than a term that Observe has returned, Observe returns the zero Info, even if Redis has lost its
// data in between.
//
// The sequence ends when ctx ends or the Client is closed. If the name or an option is wrong, Observe logs that, and
// the sequence ends at once. If Redis refuses to say who leads, Observe logs that, and asks again each second. A
// message announces each change at once. If the message is lost, a poll finds the change within 1.25 s. All observers
// in a process share one subscription and one poll.
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
