// Await: the arrival of a party, its wait, and what becomes of it.

package barrier

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/line"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// Trip is what Await returns: the number of the party's generation, and the position of the party in the
// order of arrival.
type Trip struct {
	// Generation is the number of the party's generation. A generation is made of the parties that wait
	// for each other. All parties of a generation get the same number. A later generation has a greater
	// number, but the numbers are not consecutive.
	Generation int64
	// Arrival is how many parties were still missing when this party came. It is Parties-1 for the first
	// party and 0 for the last party, as in Java's CyclicBarrier. No two parties of a generation have the
	// same Arrival. So a program can choose one party for a task, for example the last party.
	Arrival int
}

// Await waits until all parties of the barrier have come. Each call of Await is one party. The parties
// that wait for each other are one generation of the barrier. When the last party of a generation has
// come, the calls of all its parties succeed, and the next generation may begin at once.
//
// While Await waits, its party has a place in Redis. The place has a lease, which Await renews. If the
// wait of one party ends before the last party comes, the generation breaks. The generation breaks
// at once if the party's ctx ends. If the party's process dies, or if the party's Client is closed, the generation breaks
// when the lease of the party's place is over. The errors are:
//
//   - ErrBroken: the generation has broken, and none of its parties go on. If the generation broke because
//     this party's place was lost, the error also matches ErrLost. The next call of Await begins another
//     generation.
//   - ctx's error: ctx ended first, and the generation has broken. The error also matches ErrBusy if Redis
//     had answered that parties were missing. If all parties had come before the generation could break,
//     Await succeeds even though ctx has ended.
//   - ErrParties: the open generation needs another number of parties than this Barrier. This call of Await
//     has changed nothing.
//   - ErrUnknown: nobody can say whether all parties came or the generation broke, because Redis did not
//     answer or has lost its data. The error also matches the error that ended the wait: ctx's error or
//     ErrLost.
//   - ErrClosed: the Client was closed, or Shutdown of the Client had begun before the call of Await.
//
// When ctx has ended, Await asks Redis how the generation ended, before Await returns. Await waits for
// this answer for at most 3 s. If Await returns an error, the Trip names the generation in which the party
// arrived. The Trip is zero if the party did not arrive, or if Await cannot know whether the party
// arrived. If a failed call may have left something in Redis, Await removes that in the background. If
// Redis returns a transient error, Await tries again until ctx ends. If the error matches ErrWrongType,
// ErrOutOfMemory, ErrDenied or ErrBadArgument, Await returns the error at once.
func (b *Barrier) Await(ctx context.Context) (Trip, error) {
	if err := b.usable(); err != nil {
		return Trip{}, b.fail("await", err)
	}
	if err := b.engine.Begin(); err != nil {
		return Trip{}, b.fail("await", err)
	}
	defer b.engine.Done()
	ctx, span := b.engine.Telemetry.Acquire(ctx, kind, b.name)
	p := &party{barrier: b, kind: span.Kind()}
	err := p.await(ctx)
	outcome := telemetry.OutcomeOf(err, telemetry.OutcomeAcquired) // without the cause of ctx
	if err != nil {
		err = b.fail("await", errs.Ended(ctx, err))
	}
	span.End(telemetry.Acquired{Outcome: outcome, Attempts: p.attempts, Waited: p.waited, Err: err})
	return p.trip, err
}

// party is one call of Await under way.
type party struct {
	barrier *Barrier
	kind    telemetry.Kind // what is measured of it
	trip    Trip           // once it has arrived
	owner   string         // with which it has arrived

	attempts int
	waited   time.Duration
}

func (p *party) await(ctx context.Context) error {
	place, err := p.arrive(ctx)
	if place == nil {
		return err
	}
	defer p.leave(ctx, place)
	err = p.wait(place.Context(ctx))
	if err == nil || errors.Is(err, errs.Broken) {
		return err
	}
	if ended := place.Err(); ended != nil && ctx.Err() == nil {
		err = errs.Bare(ended)
	}
	return p.verdict(ctx, err)
}

// arrive announces the party to Redis. It returns the party's place, or nil if there is none to
// keep: the generation has ended, or the party could not arrive.
func (p *party) arrive(ctx context.Context) (*hold.Lease, error) {
	b := p.barrier
	for {
		r := &resource{name: b.name, at: b.at, parties: b.parties, publish: b.engine.Publish(ctx), over: b.engine.Ended.Greatest(b.at.Record)}
		place, err := hold.Request{Engine: b.engine, Resource: r, Settings: b.settings, Afresh: true}.Acquire(ctx)
		if r.asked == nil {
			return nil, errs.Bare(err)
		}
		p.attempts += r.asked.Attempts
		p.owner = r.owner
		_, unheard := r.asked.Outstanding()
		switch {
		case err == nil:
			p.trip = arrivalIn(r.asked).trip
			return place, nil
		case errors.Is(err, hold.Concluded):
			a := arrivalIn(r.asked)
			p.trip = a.trip
			b.note(a.how, p.trip.Generation)
			return nil, r.outcome
		case r.asked.Status() == conn.Done && !errors.Is(err, errs.Closed):
			p.trip = arrivalIn(r.asked).trip
			return nil, p.verdict(ctx, errs.Bare(err)) // it was granted a place too late
		case unheard:
			return nil, unknown(errs.Bare(err)) // it may have been the last
		case !errors.Is(err, errs.Lost):
			return nil, errs.Bare(err)
		}
		// No request has reached Redis in the time of a lease. It begins anew.
	}
}

// wait waits until the generation has ended. held ends with the place.
func (p *party) wait(held context.Context) error {
	b := p.barrier
	started := time.Now()
	out, err := b.engine.Lines.Wait(held, &line.Want{
		Kind: p.kind,
		// What the head of a line finds holds for all in the line, which are of one generation.
		Key:     b.at.Record + " " + strconv.FormatInt(p.trip.Generation, 10),
		Channel: b.at.Channel,
		Grant:   line.Common,
		Asker:   p,
	})
	if out.Waited {
		p.waited = time.Since(started)
	}
	return err
}

// Try implements line.Asker: it asks whether the generation is open, and if not, how it has ended.
func (p *party) Try(ctx context.Context, _ line.Ask) (line.Answer, error) {
	how, held, attempts, err := p.barrier.look(ctx, p.trip.Generation, p.owner)
	p.attempts += attempts
	switch {
	case err != nil:
		return line.Answer{}, err
	case how == open:
		return line.Answer{Held: held}, nil
	case how == tripped:
		return line.Answer{Granted: true}, nil
	case how == broken:
		return line.Answer{}, line.ForAll(errs.Broken)
	default:
		return line.Answer{}, errs.Unknown
	}
}

// verdict returns the result of Await for a party that has arrived, and whose wait ended with the
// error why. If the generation is still open, verdict breaks it.
func (p *party) verdict(ctx context.Context, why error) error {
	if errors.Is(why, errs.Closed) {
		return why
	}
	bounded, cancel := engine.Bounded(context.WithoutCancel(ctx))
	defer cancel()
	how, err := p.barrier.breaks(bounded, p.trip.Generation, p.owner)
	switch {
	case err != nil || how == forgotten:
		return unknown(why)
	case how == tripped:
		return nil
	case errors.Is(why, errs.Lost):
		return fmt.Errorf("%w: %w", errs.Broken, why)
	default:
		return why
	}
}

// leave gives up the place, in the background: by now nobody waits for the answer.
func (p *party) leave(ctx context.Context, place *hold.Lease) {
	release := func() { _ = place.Release(context.WithoutCancel(ctx)) }
	if !p.barrier.engine.Background(release) {
		release()
	}
}

// unknown wraps why, so that it also matches ErrUnknown: nobody can say how the generation has
// ended.
func unknown(why error) error {
	if errors.Is(why, errs.Unknown) {
		return why
	}
	return fmt.Errorf("%w: %w", errs.Unknown, why)
}
