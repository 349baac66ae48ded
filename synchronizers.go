// The synchronizers: what makes each of them.

package holdfast

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/barrier"
	"github.com/holdfast-go/holdfast/fairlock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/latch"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/multilock"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/quorum"
	"github.com/holdfast-go/holdfast/rlock"
	"github.com/holdfast-go/holdfast/rwlock"
	"github.com/holdfast-go/holdfast/semaphore"
	"github.com/holdfast-go/holdfast/shards"
	"github.com/holdfast-go/holdfast/slots"
)

// Mutex returns the reentrant lock of that name. options override the Client's defaults. Mutex does no I/O.
// The returned value may be kept and shared.
//
// The name may be any bytes, but not empty; see docs/keyspace.md. For each name that was locked, Redis
// keeps a token of about 150 bytes for 7 days: see docs/choosing.md.
func (c *Client) Mutex(name string, options ...LeaseOption) *Mutex {
	return rlock.New(c.engine, name, c.mapped(name), c.settings(options))
}

// Striped returns n locks under one name, for many keys (segment locks). Each key uses one of the n locks;
// rlock.Striped says which. Striped does no I/O. The returned value may be kept and shared.
//
// At most n keys are locked at the same time, in all processes together. Do not make n greater than you
// need, because many locks cost more than few: the goroutines of a process seldom wait for the same lock,
// so they cannot pass it to each other without asking Redis. A process also subscribes to each lock for
// which it waits. See docs/choosing.md.
func (c *Client) Striped(name string, n int, options ...LeaseOption) *Striped {
	return rlock.NewStriped(c.engine, name, n, c.mapped, c.settings(options))
}

// FairMutex returns the fair lock of that name. It is reentrant, like a Mutex, and is granted in the order
// of arrival across all processes. A FairMutex and a Mutex of the same name are one lock with one queue. In
// that queue each waiter of a FairMutex has its own place, but all waiters of a Mutex in one process have
// only one place. options override the Client's defaults. FairMutex does no I/O. The returned value may be
// kept and shared.
//
// A FairMutex costs one request for each grant. A Mutex for which many goroutines wait may need fewer
// requests. So use a FairMutex only where order matters. See docs/fairlock.md.
func (c *Client) FairMutex(name string, options ...LeaseOption) *FairMutex {
	return fairlock.New(c.engine, name, c.mapped(name), c.settings(options))
}

// RWMutex returns the read/write lock of that name. Any number of readers hold it together, or one writer
// holds it alone. options override the Client's defaults, for readers and for writers. RWMutex does no I/O.
// The returned value may be kept and shared.
//
// The name may be any bytes, but not empty. If the name has braces, they must make a hash tag by Redis's
// rule; see docs/keyspace.md. A Mutex excludes an RWMutex of the same name, but the release of one does not
// wake those that wait for the other.
func (c *Client) RWMutex(name string, options ...LeaseOption) *RWMutex {
	return rwlock.New(c.engine, name, c.mapped(name), *c.settings(options))
}

// Semaphore returns the counting semaphore of that name. It is the same as Redisson's RSemaphore of that
// name. Its permits have no owner. TrySetPermits sets the number of permits, once. Semaphore does no I/O.
// The returned value may be kept and shared.
//
// If a process dies with a permit, that permit never comes back. Where this matters, use a PermitSemaphore.
//
// The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) Semaphore(name string) *Semaphore {
	return semaphore.New(c.engine, name, c.mapped(name))
}

// PermitSemaphore returns the semaphore with leased permits of that name. It is the same as Redisson's
// RPermitExpirableSemaphore of that name. Each Acquire returns a Lease. If a process dies, its permits are
// free again when its lease is over. TrySetPermits or SetPermits sets the number of permits. options
// override the Client's defaults. PermitSemaphore does no I/O. The returned value may be kept and shared.
//
// The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) PermitSemaphore(name string, options ...LeaseOption) *PermitSemaphore {
	return semaphore.NewPermits(c.engine, name, c.mapped(name), *c.settings(options))
}

// Slots returns the numbered slots of that name. Each holder leases a different number, from 0 to size-1.
// See slots.Slots, and the options of package slots: Prefer, Quarantine and Lease. Slots does no I/O. The
// returned value may be kept and shared.
//
// All processes must give the same size, from 1 to slots.MaxNumbers. The name may be any bytes, but not
// empty; see docs/keyspace.md. docs/slots.md says what happens when a holder dies.
func (c *Client) Slots(name string, size int, options ...slots.Option) *Slots {
	return slots.New(c.engine, name, c.mapped(name), size, c.config.defaults, options)
}

// Shards returns one member of the shards of that name, with these options. The shards are the numbers from
// 0 to size-1. All members that are in a call of Run divide the shards evenly among themselves, and each
// shard has one owner at a time. Run does the work of the member's own shards; Owner and Watch say which
// member has which shard. Shards does no I/O. Call it once and keep the returned value, because each value
// is another member.
//
// All processes must give the same size, from 1 to shards.MaxShards. The name may be any bytes, but not
// empty; see docs/keyspace.md. docs/shards.md says what Holdfast promises.
func (c *Client) Shards(name string, size int, options ...shards.Option) *Shards {
	return shards.New(c.engine, name, c.mapped(name), size, c.common, options)
}

// Latch returns the countdown latch of that name. It is the same as Redisson's RCountDownLatch of that
// name. One caller sets the latch to a count. Each worker that is done counts it down by one. Waiters wait
// until the count is zero. Latch does no I/O. The returned value may be kept and shared.
//
// The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) Latch(name string) *Latch {
	return latch.New(c.engine, name, c.mapped(name))
}

// Barrier returns the cyclic barrier of that name. Parties, in all processes together, call its Await and
// wait for each other until the given number of parties have come. Then all of them go on, and the next
// generation may begin. All parties must give the same number, from 1 to barrier.MaxParties. Barrier does
// no I/O. The returned value may be kept and shared.
//
// The name may be any bytes, but not empty; see docs/keyspace.md. docs/barrier.md says what happens when a
// party leaves or dies.
func (c *Client) Barrier(name string, parties int, options ...barrier.Option) *Barrier {
	return barrier.New(c.engine, name, c.mapped(name), parties, c.common, options)
}

// Once returns the Once of that name. The work of each of its keys is done once in all processes together.
// The result is kept, and every caller gets it. once.Value does the work. The options are in package once:
// Keep (24 h by default), OnBusy (Wait by default), Fingerprint and others. Once does no I/O. The returned
// value may be kept and shared, or made anew for each call.
//
// The name may be any bytes, but not empty; see docs/keyspace.md. docs/once.md says how often work is done.
func (c *Client) Once(name string, options ...once.Option) *Once {
	return once.New(c.engine, name, c.mapped(name), c.config.defaults, options)
}

// Tick reports whether this caller has won the tick of that name for the time at. Of all callers in all
// processes exactly one wins, whatever their clocks say, if all others come within keep after the winner.
// Use Tick for a schedule that several replicas of a program follow. Each replica calls Tick with the time
// that the schedule names, and the winner does the work. at must be that time, not time.Now().
//
// keep is how long Redis remembers the winner, at least 1 ms. A caller that comes later than that wins
// again. So keep must be longer than this sum: how much the clocks of the replicas may differ, plus how
// late a replica may be. If each clock may be wrong by an hour, use a keep of a little over two hours.
//
// The work is done at most once. If the winner dies, nobody does the work of that tick. If Tick returns an
// error, this caller has not won. If Redis did not answer a request, the request may have won the tick. The
// Client then gives the tick back in the background, and a later caller can win it. If Redis does not
// answer within 3 s, or before ctx's deadline, the error matches ErrUnavailable. After Shutdown has begun,
// the error matches ErrClosed, so that another replica wins. But if ctx carries a lease of this Client that
// has not ended, Tick works even then. See docs/once.md.
func (c *Client) Tick(ctx context.Context, name string, at time.Time, keep time.Duration) (bool, error) {
	return once.Tick(ctx, c.engine, name, c.mapped(name), at, keep)
}

// Leader returns one candidate in the election of that name, with these options. Run waits until it is
// elected, and then leads. Other methods say who leads. Leader does no I/O. Call it once and keep the
// returned value, because each value is another candidate. Share the value with all code that asks whether
// this process leads.
//
// An election is a lock at its name, in the layout of a FairMutex. So do not use the name for any other
// synchronizer. The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) Leader(name string, options ...leader.Option) *Election {
	return leader.New(c.engine, name, c.mapped(name), c.common, options...)
}

// Limiter returns the rate limiter of that name. It bounds how much is done in a period of time, in all
// processes together. The options are in package limiter: Rate is required; Burst, Share, Concurrent and
// OnUnavailable are optional. Limiter does no I/O. Keep the returned value, and share it.
//
// All processes should give the same rate. A later call of Limiter.Set changes the rate for all processes.
// The name may be any bytes, but not empty; see docs/keyspace.md. docs/limiter.md says what Holdfast
// promises.
func (c *Client) Limiter(name string, options ...limiter.Option) *Limiter {
	return limiter.New(c.engine, name, c.mapped(name), func() limiter.Semaphore {
		return c.PermitSemaphore(name + ":concurrent")
	}, options)
}

// NewMultiLock returns one lock that is made of all the given locks. The returned lock is granted when all
// of them are granted, and lost when one of them is lost. The locks may be of any kind except a
// PermitSemaphore's Locker, and may belong to one Client or to several. NewMultiLock does no I/O. The
// returned value may be kept and shared.
//
// All callers take the locks in the same order, even if they give them in different orders. See
// multilock.MultiLock.
func NewMultiLock(lockers ...Locker) *MultiLock {
	return multilock.New(lockers...)
}

// NewQuorum returns the lock of that name on several independent servers, one server for each Client. The
// lock is granted when a majority of the servers grant it. So it survives the failure of fewer than half of
// the servers. On each server it is Mutex(name, options...). NewQuorum does no I/O. The returned value may
// be kept and shared.
//
// Use an odd number of servers, because an even number survives no more failures than one server fewer. The
// servers must not replicate each other. All processes must give the same servers and the same length of
// lease. Each server keeps a marker, the key "holdfast_quorum". A server that has lost its data has no
// marker. Such a server does not count until the longest lease has run out. See docs/quorum.md.
func NewQuorum(name string, clients []*Client, options ...LeaseOption) *Quorum {
	longest := time.Duration(0)
	for _, c := range clients {
		if c != nil {
			longest = max(longest, hold.NewSettings(c.config.defaults, options).Length)
		}
	}
	return NewQuorumOf(name, clients, longest, func(c *Client) Locker { return c.Mutex(name, options...) })
}

// NewQuorumOf is NewQuorum for locks of another kind, such as the read sides of read/write locks, or for
// leases of different lengths. member makes the lock on one server. longest is the longest lease that any
// caller takes on any of these locks. name appears only in errors and spans.
func NewQuorumOf(name string, clients []*Client, longest time.Duration, member func(c *Client) Locker) *Quorum {
	members := make([]quorum.Member, 0, len(clients))
	for i, c := range clients {
		switch {
		case c == nil:
			none := engine.Broken(fmt.Errorf("Client %d is nil: %w", i, errs.BadArgument))
			members = append(members, quorum.Member{Engine: none})
		case c.engine.Broken() != nil:
			members = append(members, quorum.Member{Engine: c.engine})
		default:
			members = append(members, quorum.Member{Engine: c.engine, Locker: member(c)})
		}
	}
	return quorum.New(name, members, longest)
}
