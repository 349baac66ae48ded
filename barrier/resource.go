// The place of a party as package hold sees it, and the calls about a generation.

package barrier

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/line"
)

// For errors, spans and metrics.
const (
	kind = "barrier" // the wait of a party, from its call to its return
	// placeKind is the place that a party has meanwhile, and that is renewed.
	placeKind = "barrier.place"
)

// resource is the place of one party, for one arrival. The goroutine that arrives makes the calls of
// hold.Concluding.
type resource struct {
	name    string
	at      keys.Barrier
	parties int
	publish string // the command that publishes
	over    int64  // the greatest generation that is over, as far as this Client knows

	asked   *conn.Call // the arrival; nil before it
	owner   string     // that arrives
	outcome error      // of an arrival that needs no place
}

var _ hold.Concluding = (*resource)(nil)

func (r *resource) Kind() string { return placeKind }
func (r *resource) Name() string { return r.name }
func (r *resource) Key() string  { return r.at.Places }

// Describe names a line in which nobody ever waits: an arrival is answered at once.
func (r *resource) Describe(w *line.Want) {
	w.Key, w.Channel = r.at.Places+" arrivals", r.at.Channel
}

// Acquire is the arrival. Redis remembers it for at least as long as the place lasts. No request is
// sent later than that: it would be another arrival.
func (r *resource) Acquire(owner hold.Owner, length time.Duration) *conn.Call {
	r.owner = owner.String()
	r.asked = &conn.Call{
		Script: enterScript,
		Keys:   []string{r.at.Record, r.at.Places},
		Args:   []any{r.owner, length.Milliseconds(), r.parties, r.publish, r.at.Channel, r.over},
		Until:  time.Now().Add(length - length/10),
	}
	return r.asked
}

// Recount is Renew: there is never more than one lease on a place.
func (r *resource) Recount(owner hold.Owner, _ int, length time.Duration) *conn.Call {
	return r.Renew(owner, length)
}

// Renew needs only one key, so it works while the cluster moves the slot.
func (r *resource) Renew(owner hold.Owner, length time.Duration) *conn.Call {
	return &conn.Call{
		Script: renewScript,
		Keys:   []string{r.at.Places},
		Args:   []any{owner.String(), length.Milliseconds()},
	}
}

// Release takes the party out. If its generation is open, the generation breaks.
func (r *resource) Release(owner hold.Owner, publish string) *conn.Call {
	return &conn.Call{
		Script: releaseScript,
		Keys:   []string{r.at.Record, r.at.Places},
		Args:   []any{owner.String(), publish, r.at.Channel},
	}
}

// Refused implements hold.Concluding: the arrival needs no place. The party was the last, or its
// generation has ended since an earlier sending; or it could not arrive.
func (r *resource) Refused(call *conn.Call) error {
	switch a := arrivalIn(call); a.how {
	case tripped:
	case broken:
		r.outcome = errs.Broken
	case otherParties:
		r.outcome = fmt.Errorf("this generation is for %d, not for %d: %w", a.parties, r.parties, errs.Parties)
	default:
		r.outcome = errs.Unknown
	}
	return hold.Concluded
}

// Heard implements line.Hearer. No message is about an arrival.
func (r *resource) Heard(string) error { return nil }

// Concludes implements hold.Concluding.
func (r *resource) Concludes() bool { return false }

// look asks whether the generation is open, and if not, how it has ended. If it is open, held is how long it stays
// so at least, even if no place is renewed. owner is the owner of one of its parties.
func (b *Barrier) look(ctx context.Context, generation int64, owner string) (how int64, held line.Held, attempts int, err error) {
	call := b.about(ctx, lookScript, generation, owner)
	if err = b.engine.Conn.Run(ctx, call); err == nil {
		b.note(call.Status(), generation)
	}
	return call.Status(), line.HeldByTTL(engine.TTL(call)), call.Attempts, err
}

// breaks breaks the generation if it is open, and returns how it has ended. The error matches
// errs.Unknown if Redis may have broken it without the answer coming through. owner is the owner of
// one of its parties, or empty.
func (b *Barrier) breaks(ctx context.Context, generation int64, owner string) (how int64, err error) {
	call := b.about(ctx, breakScript, generation, owner)
	if err = b.engine.Conn.Run(ctx, call); err == nil {
		b.note(call.Status(), generation)
		return call.Status(), nil
	}
	if _, unheard := call.Outstanding(); unheard {
		err = fmt.Errorf("%w: %w", errs.Unknown, err)
	}
	return forgotten, err
}

// note remembers that the generation is over, if how says so. A generation that Redis does not know
// is over too: its parties get ErrUnknown.
func (b *Barrier) note(how, generation int64) {
	if how == tripped || how == broken || how == forgotten {
		b.engine.Ended.Note(b.at.Record, generation)
	}
}

func (b *Barrier) about(ctx context.Context, script *conn.Script, generation int64, owner string) *conn.Call {
	return &conn.Call{
		Script: script,
		Keys:   []string{b.at.Record, b.at.Places},
		Args:   []any{generation, b.engine.Publish(ctx), b.at.Channel, owner},
	}
}
