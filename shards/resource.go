// A membership as package hold sees it: its calls, and those that hold does not know.

package shards

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/line"
)

const (
	kind = "shards" // for errors, spans and metrics
	// watchKind is the kind of those who wait for a change: members, and those that watch.
	watchKind = "shards.watch"

	// The table is kept for tableLives leases and tableRest after a member has looked at it last, or for half of that.
	// A member looks every 1.25 s, if Redis answers; one that is not answered for a lease and patience is lost.
	tableLives = 4
	tableRest  = 10 * time.Second
	patience   = 3 * time.Second
)

// resource is one membership, for its hold.
type resource struct {
	*Shards
	publish string // the command that publishes
}

var _ hold.Concluding = (*resource)(nil)

func (r *resource) Kind() string { return kind }
func (r *resource) Name() string { return r.name }
func (r *resource) Key() string  { return r.at.Members }

func (r *resource) Describe(w *line.Want) {
	w.Key, w.Channel, w.Grant = r.at.Members, r.at.Channel, line.Shared
}

func (r *resource) Acquire(owner hold.Owner, length time.Duration) *conn.Call {
	return &conn.Call{
		Script: joinScript,
		Keys:   []string{r.at.Members, r.at.Table, r.at.Token},
		Args: []any{owner.String(), length.Milliseconds(), r.size, r.config.hold.TokenKept().Milliseconds(),
			r.config.said(), r.tableKept(), r.publish, r.at.Channel},
	}
}

// Recount is Renew: nobody re-enters a membership, so there is never more than one lease on it.
func (r *resource) Recount(owner hold.Owner, _ int, length time.Duration) *conn.Call {
	return r.Renew(owner, length)
}

// Renew needs only one key. So it goes on in a slot of a cluster that is on the move.
func (r *resource) Renew(owner hold.Owner, length time.Duration) *conn.Call {
	return &conn.Call{
		Script: renewScript,
		Keys:   []string{r.at.Members},
		Args:   []any{owner.String(), length.Milliseconds()},
	}
}

// keep returns the call that keeps the table for a member that does not ask any more.
func (r *resource) keep(owner hold.Owner) *conn.Call {
	return &conn.Call{
		Script: renewScript,
		Keys:   []string{r.at.Members, r.at.Table},
		Enough: 1,
		Args:   []any{owner.String(), 0, r.tableKept()},
	}
}

func (r *resource) Release(owner hold.Owner, publish string) *conn.Call {
	return &conn.Call{
		Script: leaveScript,
		Keys:   []string{r.at.Members, r.at.Table},
		Enough: 1,
		Args:   []any{owner.String(), publish, r.at.Channel},
	}
}

// Refused implements hold.Concluding: nobody becomes a member while the others say that there are more shards,
// or fewer.
func (r *resource) Refused(call *conn.Call) error {
	return fmt.Errorf("%d shards, but its members say that there are %d: %w", r.size, sizeIn(call), errs.BadArgument)
}

// Heard implements line.Hearer. A join never waits, so no message concerns it.
func (r *resource) Heard(string) error { return nil }

// Concludes implements hold.Concluding.
func (r *resource) Concludes() bool { return false }

// balance returns the call by which the owner gives those shards up, and takes what is its share.
func (r *resource) balance(owner hold.Owner, known version, gives []held) *conn.Call {
	args := []any{owner.String(), known.rev, known.members, r.config.moves, r.config.hold.TokenKept().Milliseconds(),
		r.tableKept(), r.publish, r.at.Channel}
	for _, h := range gives {
		args = append(args, h.number, h.token)
	}
	return &conn.Call{
		Script: balanceScript,
		Keys:   []string{r.at.Members, r.at.Table, r.at.Token},
		Args:   args,
	}
}

// tableKept returns how long the table is kept at least, in ms.
func (r *resource) tableKept() int64 {
	const most = (math.MaxInt64 - tableRest) / tableLives
	return (tableLives*min(r.config.hold.Length, most) + tableRest).Milliseconds()
}
