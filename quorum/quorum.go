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

// Quorum is one lock on several independent servers. It is held while a majority of them grant it, so it
// works although the other servers fail. It is Redlock with two additions: it has a token that grows,
// and servers that have lost their data do not count. A Quorum has no state: any number of goroutines
// may use one value.
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

// New returns the lock of that name on the servers of members. longest is the longest lease that any
// process takes on this lock. New does no I/O. If an argument is wrong, every call on the lock returns
// the error.
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

// Name returns the name that the lock was made with.
func (q *Quorum) Name() string { return engine.Made(q).name }

func (q *Quorum) majority() int { return len(q.members)/2 + 1 }

// Lock waits until a majority of the servers have granted the lock, and returns the Lease, which the
// caller must release. With a context made by Lease.Context, Lock re-enters without asking a server.
//
// Lock asks all servers at once, and waits for each server for at most half a second. If no majority grants the lock,
// Lock gives back what it has taken, and asks again after a random time, at most 250 ms, as long as ctx allows. If ctx
// ends, the error matches ctx's error. The error also matches ErrBusy if somebody else held the lock, or if callers
// that came earlier had to go first. (For 10 s after a process has seen others wait, it asks only in the order of
// arrival.) The error also matches ErrNoQuorum if no majority could be asked. If a majority cannot grant the lock
// because of an error that a retry cannot mend, Lock returns that error at once. If an unanswered request has taken the
// lock on a server, that lock is given back within a second of the answer, or expires.
func (q *Quorum) Lock(ctx context.Context) (*Lease, error) {
	return q.acquire(ctx, "lock", true)
}

// TryLock is Lock without the wait: it asks each server once. If somebody else holds the lock, or asks
// for it at the same time, the error matches ErrBusy. If no majority of the servers answers, the error
// matches ErrNoQuorum.
func (q *Quorum) TryLock(ctx context.Context) (*Lease, error) {
	return q.acquire(ctx, "try lock", false)
}

// LeaseFrom returns the lease on the Quorum that ctx carries: the innermost, if ctx carries several. A
// Lock with ctx would re-enter this lease. It may have ended. ok is false if ctx carries no such lease.
// LeaseFrom does no I/O.
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
	h, err := q.rounds(hold.Apart(ctx), wait, a)
	if err != nil {
		return nil, err
	}
	h.kind = of
	return h.begin(), nil
}

// telemetry returns that of the first server's Client.
func (q *Quorum) telemetry() *telemetry.Telemetry { return q.members[0].Engine.Telemetry }
