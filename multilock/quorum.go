// A lock on a majority of independent servers.

package multilock

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
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/lease"
)

const kind = "quorum"

// Quorum is one lock that is held when a majority of independent servers grant
// it, so that it outlives the failure of the others: Redlock, with a token that
// grows, and with servers that lost their data kept out. It holds no state: a
// value may be used by any number of goroutines.
//
// What it promises, and on what conditions, is in docs/quorum.md.
type Quorum struct {
	name    string
	members []Member
	longest time.Duration
	set     string // which servers they are: see setOf
	err     error  // why it cannot be used

	// identity is equal for values that are the same lock of the same Clients.
	identity string
}

// NewQuorum returns the lock of that name on those servers. longest is the
// longest lease that anybody takes on it. It does no I/O; what is wrong with the
// arguments, each call says.
func NewQuorum(name string, members []Member, longest time.Duration) *Quorum {
	q := &Quorum{name: name, members: members, longest: longest}
	switch {
	case len(members) == 0:
		q.err = fmt.Errorf("no servers were given: %w", errs.BadArgument)
	case longest < lease.MinLease:
		q.err = fmt.Errorf("a longest lease of %v, shorter than %v: %w", longest, lease.MinLease, errs.BadArgument)
	}
	if err := fit(members); err != nil && q.err == nil {
		q.err = err
	}
	q.identity, q.set = identityOf(members), setOf(members)
	return q
}

// fit says what is wrong with the servers: two that are one, as far as the Clients show
// that, or locks that a majority does not protect.
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
		// Of permits more could be taken on majorities than there are on any server.
		if _, ok := m.Locker.(lease.Placed); !ok {
			return fmt.Errorf("a lock of type %T does not say where it stands: %w", m.Locker, errs.BadArgument)
		}
	}
	return nil
}

// serverOf returns the address of the server that the Client is of, without the database:
// two databases of a server fail together. known is false where that does not tell it
// from others, as behind Sentinels.
func serverOf(e *engine.Engine) (server string, known bool) {
	server = e.Conn.Address()
	if i := strings.LastIndexByte(server, '/'); i >= 0 {
		server = server[:i]
	}
	return server, server != "" && server != "FailoverClient"
}

// setOf returns what tells the set of servers from any other, whatever the order: how
// many they are, and a hash of the addresses that their Clients were given. Processes that
// give a server different addresses take theirs for different sets, which costs them the
// longest lease when the quorum begins, and nothing else.
func setOf(members []Member) string {
	addresses := make([]string, len(members))
	for i, m := range members {
		addresses[i] = strconv.Quote(m.Engine.Conn.Address())
	}
	slices.Sort(addresses)
	sum := sha256.Sum256([]byte(strings.Join(addresses, ",")))
	return fmt.Sprintf("%d-%x", len(members), sum[:8])
}

// identityOf returns what identity is: where the members stand, in whatever order.
func identityOf(members []Member) string {
	parts := make([]string, len(members))
	for i, m := range members {
		if placed, ok := m.Locker.(lease.Placed); ok {
			// Two sides of one lock differ by their type only.
			parts[i] = fmt.Sprintf("%p %T %q", m.Engine, m.Locker, placed.Place())
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// BrokenQuorum returns a lock of which every call fails with err.
func BrokenQuorum(name string, err error) *Quorum { return &Quorum{name: name, err: err} }

// Name returns the name that the lock was made with.
func (q *Quorum) Name() string { return q.name }

// majority is how many servers must grant.
func (q *Quorum) majority() int { return len(q.members)/2 + 1 }

// Lock waits until a majority of the servers have granted the lock and returns
// the Lease, which the caller must release. A context made by QuorumLease.Context
// re-enters, without asking a server.
//
// All servers are asked at once, each for half a second at the most. Where that
// is no grant what was taken is given back, and they are asked again after a
// random time, 250 ms at the most, as long as ctx allows. When ctx ends the error
// matches ctx's and ErrBusy, if another was found to hold the lock, or
// ErrNoQuorum, if no majority could be asked. An error that asking again does not
// mend is returned once it keeps a majority from granting. What requests that were
// not answered have taken is given back within a second of the answer, or runs
// out.
func (q *Quorum) Lock(ctx context.Context) (*QuorumLease, error) {
	return q.acquire(ctx, "lock", true)
}

// TryLock is Lock without the wait: each server is asked once. If another holds
// the lock, or asks at the same time, the error matches ErrBusy; if no majority of
// servers answers, ErrNoQuorum.
func (q *Quorum) TryLock(ctx context.Context) (*QuorumLease, error) {
	return q.acquire(ctx, "try lock", false)
}

func (q *Quorum) acquire(ctx context.Context, op string, wait bool) (*QuorumLease, error) {
	if q.err != nil {
		return nil, lease.CallError(op, kind, q.name, q.err)
	}
	ctx, span := q.telemetry().Acquire(ctx, kind, q.name)
	a := telemetry.Acquired{}
	l, err := q.enter(ctx, wait, &a)
	if err != nil {
		err = lease.CallError(op, kind, q.name, err)
	} else {
		a.Token = l.Token()
	}
	a.Outcome, a.Err = telemetry.OutcomeOf(err, telemetry.OutcomeAcquired), err
	span.End(a)
	return l, err
}

// enter enters the hold that ctx carries, or a new one.
func (q *Quorum) enter(ctx context.Context, wait bool, a *telemetry.Acquired) (*QuorumLease, error) {
	if outer, ok := ctx.Value(carriage{q.identity}).(*QuorumLease); ok {
		a.Reentrant = true
		return outer.hold.enter(outer)
	}
	h, err := q.rounds(ctx, wait, a)
	if err != nil {
		return nil, err
	}
	return h.begin(), nil
}

// rounds asks in rounds until it is granted.
func (q *Quorum) rounds(ctx context.Context, wait bool, a *telemetry.Acquired) (*hold, error) {
	started := time.Now()
	var last error
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		if err := ctx.Err(); err != nil {
			return nil, because(err, last)
		}
		a.Attempts++
		h, err := q.round(ctx)
		switch {
		case err == nil:
			return h, nil
		case errors.Is(err, errBegun):
			continue
		case !wait || final(err):
			return nil, err
		case last == nil || ctx.Err() == nil:
			last = err // a round that ctx cut short says nothing
		}
		// Random, so that of those who took a part each one is alone some time.
		_ = engine.Sleep(ctx, pause/2+rand.N(pause/2))
		a.Waited = time.Since(started)
	}
}

// The pause between two rounds doubles from one to the other.
const (
	minPause = 8 * time.Millisecond
	maxPause = 250 * time.Millisecond
)

// because explains the end of a wait by the last refusal.
func because(end, last error) error {
	if last == nil {
		return end
	}
	return fmt.Errorf("%w: %w", last, end)
}

// telemetry is that of the first server's Client.
func (q *Quorum) telemetry() *telemetry.Telemetry { return q.members[0].Engine.Telemetry }
