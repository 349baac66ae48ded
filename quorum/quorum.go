// A lock on a majority of independent servers.

package quorum

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/lease"
)

const kind = "quorum"

// Quorum is one lock on several independent servers. The lock is held while a majority of the servers hold
// it, so it works even if the other servers fail. It is Redlock with two additions: the lock has a token
// that grows, and the grant of a server that has lost its data does not count. A Quorum has no state, so
// any number of goroutines may use one Quorum.
//
// docs/quorum.md says what a Quorum promises, and on what conditions.
type Quorum struct {
	name    string
	members []Member
	longest time.Duration
	set     string // which servers they are: see setOf
	err     error  // why it cannot be used

	// identity is equal for values that are the same lock of the same Clients.
	identity string
}

// New returns the lock of the given name on the servers of members. longest is the longest lease that any
// process takes on this lock. New does no I/O. If an argument is wrong, every call on the lock returns the
// error.
func New(name string, members []Member, longest time.Duration) *Quorum {
	q := &Quorum{name: name, members: members, longest: longest}
	for _, m := range members {
		if q.err = m.Engine.Broken(); q.err != nil {
			return q
		}
	}
	switch {
	case len(members) == 0:
		q.err = errNoServers
	case longest < lease.MinLease:
		q.err = fmt.Errorf("a longest lease of %v, shorter than %v: %w", longest, lease.MinLease, errs.BadArgument)
	}
	if err := fit(members); err != nil && q.err == nil {
		q.err = err
	}
	if q.err == nil {
		q.identity, q.set = identityOf(members), setOf(members)
	}
	return q
}

var errNoServers = fmt.Errorf("no servers were given: %w", errs.BadArgument)

func (q *Quorum) usable() error {
	if q == nil || q.err == nil && len(q.members) == 0 {
		return errNoServers
	}
	return q.err
}

// Name returns the name of the lock, as the program gave it to NewQuorum or NewQuorumOf.
func (q *Quorum) Name() string { return engine.Made(q).name }

func (q *Quorum) majority() int { return len(q.members)/2 + 1 }

// Lock waits until a majority of the servers have granted the lock, and returns a Lease. The caller must
// release the Lease. If ctx carries a Lease on this Quorum (see Lease.Context), Lock re-enters the hold,
// and asks no server.
//
// Lock asks all servers at the same time, and waits for each server for at most half a second. If no
// majority grants the lock, Lock gives back the grants that it has got, waits for a random time of at most
// 250 ms, and asks again when no earlier caller waits. Lock goes on in this way as long as ctx allows. If
// this process has seen other callers wait within the last 10 s, even the first request waits for the
// earlier callers.
//
// If ctx ends, the error matches ctx's error. The error also matches ErrBusy if somebody else held the
// lock, or if earlier callers had to go first. The error also matches ErrNoQuorum if fewer than a majority
// of the servers answered. Some errors of a server, such as ErrDenied, do not go away when Lock asks
// again. If so many servers return such errors that no majority is left, Lock returns the errors at once.
// If a server has granted the lock, but its answer has not come, the Client gives the grant back within a
// second after the server answers again. Otherwise the grant expires.
func (q *Quorum) Lock(ctx context.Context) (*Lease, error) {
	return q.acquire(ctx, "lock", true)
}

// TryLock is Lock without the wait: it asks each server once. If somebody else holds the lock, or if
// another caller asks for the lock at the same time, the error matches ErrBusy. If no majority of the
// servers answers, the error matches ErrNoQuorum.
func (q *Quorum) TryLock(ctx context.Context) (*Lease, error) {
	return q.acquire(ctx, "try lock", false)
}

// LeaseFrom returns a Lease that ctx carries. If ctx carries a Lease on this Quorum, LeaseFrom returns
// that Lease and true. If ctx carries several such Leases, LeaseFrom returns the innermost. Lock with ctx
// would re-enter the returned Lease. The returned Lease may have ended. If ctx carries no such Lease, ok
// is false. LeaseFrom does no I/O.
func (q *Quorum) LeaseFrom(ctx context.Context) (l *Lease, ok bool) {
	if q.usable() != nil {
		return nil, false
	}
	l, _, ok = hold.WholeIn[*Lease](ctx, q.identity)
	return l, ok
}

func (q *Quorum) acquire(ctx context.Context, op string, wait bool) (*Lease, error) {
	if err := q.usable(); err != nil {
		return nil, errs.Call(op, kind, q.Name(), err)
	}
	ctx, span := q.telemetry().Acquire(ctx, kind, q.name)
	a := telemetry.Acquired{}
	l, err := q.enter(ctx, wait, &a, span.Kind())
	a.Outcome = telemetry.OutcomeOf(err, telemetry.OutcomeAcquired) // without the cause of ctx
	if err != nil {
		err = errs.Call(op, kind, q.name, errs.Ended(ctx, err))
	} else {
		a.Token = l.Token()
	}
	a.Err = err
	span.End(a)
	return l, err
}

// enter enters the hold that ctx carries, or begins a new one.
func (q *Quorum) enter(ctx context.Context, wait bool, a *telemetry.Acquired, of telemetry.Kind) (*Lease, error) {
	if outer, found := q.LeaseFrom(ctx); found {
		a.Reentrant = true
		if end := ctx.Err(); end != nil && outer.Err() == nil {
			return nil, end
		}
		return outer.hold.enter(outer)
	}
	h, err := q.rounds(hold.Member(ctx), wait, a)
	if err != nil {
		return nil, err
	}
	h.kind = of
	return h.begin(), nil
}

// telemetry returns that of the first server's Client.
func (q *Quorum) telemetry() *telemetry.Telemetry { return q.members[0].Engine.Telemetry }
