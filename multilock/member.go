// One server of a quorum: its lock, its marker, its token.

package multilock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/lease"
)

// Member is one server of a Quorum, and the lock on it.
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

// ask asks a member for its lock, and then for its marker. The order matters: a server that lost
// its data between the two has lost the marker as well, and has no other that counts, unless the
// quorum has begun since the round began.
func (q *Quorum) ask(ctx context.Context, at *seenAt, began time.Time) (a answer) {
	a.lease, a.err = at.member.Locker.TryLock(ctx)
	if a.err != nil && !errors.Is(a.err, errs.Busy) {
		return a
	}
	var err error
	if a.marker, err = at.member.mark(ctx, empty, q.set, ""); err != nil && a.err == nil {
		a.err = err
	}
	if a.lease != nil && time.Until(a.lease.Deadline()) > q.longest {
		a.err = fmt.Errorf("a lease longer than %v, the longest there is to be: %w", q.longest, errs.BadArgument)
	}
	switch {
	case a.err != nil:
	case !q.trusts(a.marker):
		a.err = errQuarantine
	case a.marker.text != at.marker && a.marker.age-time.Since(began) < beginLimit:
		a.err = errBegun
	}
	return a
}

// errQuarantine is why a server that answers does not count.
var errQuarantine = errors.New("the server has lost its data, and does not count until the longest lease is over")

// counts reports whether the member's grant counts.
func (a answer) counts() bool { return a.lease != nil && a.err == nil }

// early reports whether the member's grant would count if it was certain that its marker is older than the
// round. It is certain in the next.
func (a answer) early() bool { return a.lease != nil && errors.Is(a.err, errBegun) }

// marker is what a server's marker says. The zero marker stands for a server that was not asked.
type marker struct {
	asked bool
	text  string // as it stands on the server
	since origin
	age   time.Duration // since it was written: see engine.Aging; negative if the server's clock was set back
	set   string        // the set of servers for which it was written
}

// origin is the event from which on a server is known to have kept its data.
type origin string

const (
	missing origin = ""      // there is no marker: only from now on
	empty   origin = "empty" // there was no marker. The server is new, or has lost its data, and does not count
	fresh   origin = "new"   // a quorum began with the server
	lost    origin = "lost"  // a loss of data was found, when the marker was written
)

// mark asks for the server's marker, for that set of servers. Before that it writes one, if write says
// which kind and the server's state allows that: see mark.lua. instead is the marker that fresh
// replaces.
func (m Member) mark(ctx context.Context, write origin, set, instead string) (marker, error) {
	call := &conn.Call{Script: markScript, Keys: []string{keys.QuorumMarker}, Args: []any{string(write), set, instead}, Prompt: true}
	if err := m.Engine.Conn.Run(ctx, call); err != nil {
		return marker{}, err
	}
	text := call.ResultText()
	parts := strings.SplitN(text, ":", 3)
	parts = append(parts, "", "")
	micros, err := strconv.ParseInt(parts[1], 10, 64)
	if parts[0] != "" && err != nil {
		return marker{}, fmt.Errorf("the key %s holds no marker: %w", keys.QuorumMarker, errs.WrongType)
	}
	age := m.Engine.Marker.Of(text, time.Duration(call.ServerTime()-micros)*time.Microsecond)
	return marker{asked: true, text: text, since: origin(parts[0]), age: age, set: parts[2]}, nil
}

// ProbeMarker asks one server for its marker. It returns the number of servers of the quorum that
// wrote the marker, 0 if that is not known, and the error. It is for Client.Check.
func ProbeMarker(ctx context.Context, e *engine.Engine) (servers int, err error) {
	m, err := Member{Engine: e}.mark(ctx, "", "", "")
	number, _, _ := strings.Cut(m.set, "-")
	servers, _ = strconv.Atoi(number)
	return servers, err
}

// began reports whether the marker says that a quorum of exactly this set of servers began with its
// server. Then no lease of any lock on the set is older than the marker. A marker of another set
// says only that the server had no data then: the server may have lost leases of this set.
func (q *Quorum) began(m marker) bool { return m.since == fresh && m.set == q.set }

// trusts reports whether the leases on this set that the marker's server may have forgotten are all
// over.
func (q *Quorum) trusts(m marker) bool {
	return q.began(m) || (m.since == fresh || m.since == lost) && m.age >= q.longest
}

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
