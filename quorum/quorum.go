// A lock on a majority of independent servers.

package quorum

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/lease"
)

const kind = "quorum"

// Quorum is one lock that is held when a majority of independent servers grant it, so that it
// outlives the failure of the others. It is Redlock, with a token that grows, and servers
// that have lost their data do not count. A Quorum holds no state: any number of goroutines may use
// one value.
//
// docs/quorum.md says what it promises, and on what conditions.
type Quorum struct {
	name    string
	members []Member
	longest time.Duration
	set     string // which servers they are: see setOf
	err     error  // why it cannot be used

	// identity is equal for values that are the same lock of the same Clients.
	identity string
}

// New returns the lock of that name on those servers. longest is the longest lease that anybody
// takes on it. New does no I/O. If an argument is wrong, every call on the lock says so.
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

// errNoServers is why a Quorum without servers cannot be used.
var errNoServers = fmt.Errorf("no servers were given: %w", errs.BadArgument)

// usable returns nil, or why q cannot be used.
func (q *Quorum) usable() error {
	if q == nil || q.err == nil && len(q.members) == 0 {
		return errNoServers
	}
	return q.err
}

// fit returns what is wrong with the servers: two of them are one server, as far as the Clients
// show that, or they have locks that a majority does not protect.
func fit(members []Member) error {
	clients, servers := make(map[*engine.Engine]bool), make(map[string]bool)
	for _, m := range members {
		if clients[m.Engine] {
			return fmt.Errorf("a Client was given twice: %w", errs.BadArgument)
		}
		clients[m.Engine] = true
		if server, known := serverOf(m.Engine); known && servers[server] {
			return fmt.Errorf("two Clients are of one server, %s: %w", server, errs.BadArgument)
		} else {
			servers[server] = true
		}
		// With permits, more could be taken on majorities than there are on any server.
		if _, ok := m.Locker.(lease.Placed); !ok {
			return fmt.Errorf("a lock of type %T does not say where it stands: %w", m.Locker, errs.BadArgument)
		}
	}
	return nil
}

// serverOf returns the address of the Client's server, without the database: two databases of a
// server fail together. known is false if the address does not tell the server from others, as
// behind Sentinels.
func serverOf(e *engine.Engine) (server string, known bool) {
	server = e.Conn.Address()
	if i := strings.LastIndexByte(server, '/'); i >= 0 {
		server = server[:i]
	}
	return server, server != "" && server != "FailoverClient"
}

// setOf returns a text that tells the set of servers from any other, in whatever order they are
// given. It has the number of servers, and a hash of the addresses that their Clients were given.
// Processes that give a server different addresses take theirs for different sets. That costs them
// the longest lease when the quorum begins, and nothing else.
func setOf(members []Member) string {
	addresses := make([]string, len(members))
	for i, m := range members {
		addresses[i] = strconv.Quote(m.Engine.Conn.Address())
	}
	slices.Sort(addresses)
	sum := sha256.Sum256([]byte(strings.Join(addresses, ",")))
	return fmt.Sprintf("%d-%x", len(members), sum[:8])
}

// identityOf returns the identity of a Quorum: where its members stand, in whatever order they are
// given.
func identityOf(members []Member) string {
	parts := make([]string, len(members))
	for i, m := range members {
		if placed, ok := m.Locker.(lease.Placed); ok {
			// The two sides of one lock differ only by their type.
			parts[i] = fmt.Sprintf("%p %T %q", m.Engine, m.Locker, placed.Place())
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// Name returns the name that the lock was made with.
func (q *Quorum) Name() string { return engine.Made(q).name }

// majority returns how many servers must grant.
func (q *Quorum) majority() int { return len(q.members)/2 + 1 }

// Lock waits until a majority of the servers have granted the lock, and returns the Lease, which
// the caller must release. A context made by Lease.Context re-enters, without asking a
// server.
//
// Lock asks all servers at once, and waits for each for half a second at the most. If that is no
// grant, it gives back what it has taken, and asks again after a random time, 250 ms at the most,
// as long as ctx allows. If ctx ends, the error matches ctx's error. It also matches ErrBusy if
// another was found to hold the lock, or ErrNoQuorum if no majority could be asked. If an error
// that asking again does not mend keeps a majority from granting, Lock returns it at once. What
// unanswered requests have taken is given back within a second of the answer, or runs out.
func (q *Quorum) Lock(ctx context.Context) (*Lease, error) {
	return q.acquire(ctx, "lock", true)
}

// TryLock is Lock without the wait: it asks each server once. If another holds the lock, or asks
// for it at the same time, the error matches ErrBusy. If no majority of the servers answers, it
// matches ErrNoQuorum.
func (q *Quorum) TryLock(ctx context.Context) (*Lease, error) {
	return q.acquire(ctx, "try lock", false)
}

// LeaseFrom returns the lease on the Quorum that ctx carries: the innermost, if it carries several.
// It is the lease that a Lock with ctx would re-enter, and it may have ended. ok is false if ctx
// carries none. LeaseFrom asks nobody.
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
	h, err := q.rounds(ctx, wait, a)
	if err != nil {
		return nil, err
	}
	h.kind = of
	return h.begin(), nil
}

// rounds asks in rounds until a majority grants the lock.
func (q *Quorum) rounds(ctx context.Context, wait bool, a *telemetry.Acquired) (*majorityHold, error) {
	started := time.Now()
	seen := make([]*seenAt, len(q.members))
	for i, m := range q.members {
		seen[i] = &seenAt{member: m}
	}
	var last error
	turn := q.turn()
	if wait {
		defer turn.over()
	}
	for mayAsk := true; ; mayAsk = !wait || turn.mine(ctx) {
		if err := ctx.Err(); err != nil {
			return nil, because(err, last)
		}
		if !mayAsk {
			_ = engine.Sleep(ctx, random(turn.next()))
			a.Waited = time.Since(started)
			continue
		}
		a.Attempts++
		h, err := q.round(ctx, seen)
		switch {
		case err == nil:
			return h, nil
		case errors.Is(err, errBegun):
			continue
		case !wait || final(err):
			if end := ctx.Err(); end != nil {
				err = because(end, err)
			}
			return nil, err
		case last == nil || ctx.Err() == nil:
			last = err // a round that ctx cut short says nothing
		}
		if !errors.Is(err, errs.Busy) {
			turn.yield()
		}
		// The pause is random, so that of several callers that each took a part of the servers,
		// every one is alone at some time.
		_ = engine.Sleep(ctx, random(turn.next()))
		a.Waited = time.Since(started)
	}
}

// The bounds of the pause between two rounds: see turn.next.
const (
	minPause = 8 * time.Millisecond
	maxPause = 250 * time.Millisecond
)

// random returns at least half of d, and less than d.
func random(d time.Duration) time.Duration { return d/2 + rand.N(d/2) }

// because explains the end of a wait by the last refusal.
func because(end, last error) error {
	if last == nil {
		return end
	}
	return fmt.Errorf("%w: %w", last, end)
}

// telemetry returns that of the first server's Client.
func (q *Quorum) telemetry() *telemetry.Telemetry { return q.members[0].Engine.Telemetry }
