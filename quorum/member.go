// One server of a quorum: what it is asked in a round, and what it answers.

package quorum

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
	"github.com/holdfast-go/holdfast/lease"
)

// Member is one server of a Quorum: the engine of the server's Client, and the lock on the server.
type Member struct {
	Engine *engine.Engine
	Locker lease.Locker
}

// answer is what a member answered when it was asked for its lock.
type answer struct {
	lease  *lease.Lease // nil if it was not granted
	marker marker
	err    error // why it was not granted, or why it does not count
}

// seenAt is a member, and the marker that was last seen there, or "".
type seenAt struct {
	member Member
	marker string
}

// unseen returns the members, where no marker was seen yet.
func (q *Quorum) unseen() []*seenAt {
	seen := make([]*seenAt, len(q.members))
	for i, m := range q.members {
		seen[i] = &seenAt{member: m}
	}
	return seen
}

// ask asks a member for its lock, and then for its marker. The order matters: a server that lost
// its data between the two has lost the marker as well, and has no other that counts, unless the
// quorum has begun since the round began.
func (q *Quorum) ask(ctx context.Context, at *seenAt, began time.Time) (a answer) {
	a.lease, a.err = at.member.Locker.TryLock(ctx)
	if a.err != nil && !errors.Is(a.err, errs.Busy) {
		return a
	}
	var err error
	a.marker, err = at.member.mark(ctx, marking{write: foundEmpty, set: q.set})
	switch {
	case a.lease != nil && time.Until(a.lease.Deadline())+(*hold.Lease)(a.lease).Grace() > q.longest:
		a.err = fmt.Errorf("a lease longer than %v, the longest there is to be: %w", q.longest, errs.BadArgument)
	case a.err != nil:
	case err != nil:
		a.err = err
	case !q.trusts(a.marker):
		a.err = errQuarantine
	case a.marker.text != at.marker && a.marker.age-time.Since(began) < beginLimit:
		a.err = errBegun
	}
	return a
}

// errQuarantine is why a server that answers does not count.
var errQuarantine = errors.New("the server has lost its data, and does not count until the longest lease is over")

func (a answer) counts() bool { return a.lease != nil && a.err == nil }

// early reports whether the member's grant does not count only because its marker may be younger than the
// round. In the next round it counts.
func (a answer) early() bool { return a.lease != nil && errors.Is(a.err, errBegun) }

// raise raises the member's token to at least token, which is that of the whole.
func (m Member) raise(ctx context.Context, l *lease.Lease, token int64) error {
	fenced, ok := (*hold.Lease)(l).Resource().(hold.Fenced)
	if !ok || l.Token() == token {
		return nil
	}
	return m.Engine.Conn.Run(ctx, &conn.Call{
		Script: raiseScript,
		Keys:   []string{fenced.TokenKey()},
		Args:   []any{strconv.FormatInt(token, 10), fenced.RemadeLife()},
	})
}
