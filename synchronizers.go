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

// Mutex returns the reentrant lock of that name. It does no I/O. The returned value may be kept
// and shared. options override the Client's defaults.
//
// The name may be any bytes, but not empty; see docs/keyspace.md. Each name that was locked leaves its
// token in Redis for 7 days, some 150 bytes: see docs/choosing.md.
func (c *Client) Mutex(name string, options ...LeaseOption) *Mutex {
	return rlock.New(c.engine, name, c.mapped(name), c.settings(options))
}

// Striped returns n locks under one name, for many keys: each key uses one of the locks
// (segment locks). It does no I/O. The returned value may be kept and shared. See rlock.Striped
// for how keys are spread over the locks.
//
// At most n keys are locked at the same time, in all processes together. A greater n than you need costs
// more: the goroutines of a process then seldom wait for the same lock, so they cannot pass it on among
// themselves, and a process subscribes to each lock for which it waits. See docs/choosing.md.
func (c *Client) Striped(name string, n int, options ...LeaseOption) *Striped {
	return rlock.NewStriped(c.engine, name, n, c.mapped, c.settings(options))
}

// FairMutex returns the fair lock of that name. It is reentrant, as Mutex is, and granted in the order of
// arrival across all processes. It is the same lock as Mutex(name), with the same queue. In the queue each
// waiter of a FairMutex has its own place; the waiters of a Mutex have one place for each process. FairMutex
// does no I/O. The returned value may be kept and shared. options override the Client's defaults.
//
// Fairness costs a request for each grant, and a Mutex under contention may need fewer: use a
// FairMutex where order matters. See docs/fairlock.md.
func (c *Client) FairMutex(name string, options ...LeaseOption) *FairMutex {
	return fairlock.New(c.engine, name, c.mapped(name), c.settings(options))
}

// RWMutex returns the read/write lock of that name: any number of readers hold it together, or
// one writer alone. It does no I/O. The returned value may be kept and shared. options override
// the Client's defaults, for both sides.
//
// The name may be any bytes, but not empty. If it has braces, they must make a hash tag by
// Redis's rule; see docs/keyspace.md. A Mutex of the same name excludes an RWMutex, but the two
// do not wake each other.
func (c *Client) RWMutex(name string, options ...LeaseOption) *RWMutex {
	return rwlock.New(c.engine, name, c.mapped(name), *c.settings(options))
}

// Semaphore returns the counting semaphore of that name, which is Redisson's RSemaphore. Its
// permits have no owner. TrySetPermits sets the number of permits, once. Semaphore does no I/O. The
// returned value may be kept and shared.
//
// A permit that a dead process had taken is never returned; where that matters, use a
// PermitSemaphore.
//
// The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) Semaphore(name string) *Semaphore {
	return semaphore.New(c.engine, name, c.mapped(name))
}

// PermitSemaphore returns the semaphore with leased permits of that name, which is Redisson's
// RPermitExpirableSemaphore. Each Acquire returns a Lease, and the permits of a dead process
// are free again when its lease is over. TrySetPermits or SetPermits sets the number of
// permits. PermitSemaphore does no I/O. The returned value may be kept and shared. options
// override the Client's defaults.
//
// The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) PermitSemaphore(name string, options ...LeaseOption) *PermitSemaphore {
	return semaphore.NewPermits(c.engine, name, c.mapped(name), *c.settings(options))
}

// Slots returns the numbered slots of that name: each holder leases a different number, from 0 to size-1.
// See slots.Slots, and the options of package slots: Prefer, Quarantine and Lease. Slots does no I/O. The
// returned value may be kept and shared.
//
// All processes must give the same size, from 1 to slots.MaxNumbers. The name may be any bytes, but not
// empty; see docs/keyspace.md, and docs/slots.md for what happens when a holder dies.
func (c *Client) Slots(name string, size int, options ...slots.Option) *Slots {
	return slots.New(c.engine, name, c.mapped(name), size, c.config.defaults, options)
}

// Shards returns the shards of that name, for a member with these options. Shards are the numbers from 0 to size-1;
// the members whose Run is under way share them evenly, and each shard has one owner at a time. Run does the work
// of the member's shards; Owner and Watch say who has which. Shards does no I/O. Keep the returned value: two
// values are two members.
//
// All processes must give the same size, from 1 to shards.MaxShards. The name may be any bytes, but not empty; see
// docs/keyspace.md, and docs/shards.md for what is promised.
func (c *Client) Shards(name string, size int, options ...shards.Option) *Shards {
	return shards.New(c.engine, name, c.mapped(name), size, c.common, options)
}

// Latch returns the countdown latch of that name, which is Redisson's RCountDownLatch. It is
// set to a count; each worker that is done counts it down; waiters wait until the count is
// zero. Latch does no I/O. The returned value may be kept and shared.
//
// The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) Latch(name string) *Latch {
	return latch.New(c.engine, name, c.mapped(name))
}

// Barrier returns the cyclic barrier of that name: parties wait for each other in its Await, in all
// processes together, until the given number have come. Then all go on, and the next generation may begin.
// All parties must give the same number, from 1 to barrier.MaxParties. Barrier does no I/O. The
// returned value may be kept and shared.
//
// The name may be any bytes, but not empty; see docs/keyspace.md, and docs/barrier.md for what
// happens when a party leaves or dies.
func (c *Client) Barrier(name string, parties int, options ...barrier.Option) *Barrier {
	return barrier.New(c.engine, name, c.mapped(name), parties, c.common, options)
}

// Once returns the Once of that name: the work of each of its keys is done once, in all processes
// together, and every caller gets its result, which is kept. See once.Value, which does the work,
// and the options of package once: Keep (24 h), OnBusy (Wait), Fingerprint and so on. Once does no
// I/O. The returned value may be kept and shared, or made anew for each call.
//
// The name may be any bytes, but not empty; see docs/keyspace.md, and docs/once.md for how often
// work is done.
func (c *Client) Once(name string, options ...once.Option) *Once {
	return once.New(c.engine, name, c.mapped(name), c.config.defaults, options)
}

// Tick reports whether this caller has won the tick of that name for the time at. Of all callers in all processes
// exactly one wins, whatever their clocks say, if all come within keep of that win. It is for a schedule that several
// replicas of a program follow: each calls Tick with the time that the schedule names, and the winner does the work.
// at must be that time, not time.Now().
//
// keep is how long the winner is remembered, at least 1 ms. A caller that comes after that wins again. So
// keep must be longer than the clocks of the replicas may differ plus the time that a replica may be late.
// If each clock may be wrong by an hour, keep is a little over two hours.
//
// The work is done at most once. If the winner dies, nobody does that tick. If Tick returns an error, this
// call has not won, and leaves nothing behind: if an unanswered request may have taken the tick, it is given
// back in the background, for others that come later. If Redis does not answer within 3 s, or before ctx's
// deadline, the error matches ErrUnavailable. After Shutdown has begun the error matches ErrClosed, so that
// a replica that stays wins, unless ctx carries a lease of this Client that has not ended. See docs/once.md.
func (c *Client) Tick(ctx context.Context, name string, at time.Time, keep time.Duration) (bool, error) {
	return once.Tick(ctx, c.engine, name, c.mapped(name), at, keep)
}

// Leader returns the election of that name, as a candidate with these options. Run campaigns and
// leads; other methods say who leads. Leader does no I/O. Keep the returned value, and share it with
// whoever asks whether this process leads: two values are two candidates.
//
// An election is a lock at its name, in the layout of a FairMutex. Share the name with no other
// synchronizer. The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) Leader(name string, options ...leader.Option) *Election {
	return leader.New(c.engine, name, c.mapped(name), c.common, options...)
}

// Limiter returns the rate limiter of that name: it bounds how much is done in a given time, in all processes
// together. The options of package limiter say how much: Rate, which every Limiter needs; Burst, Share,
// Concurrent and OnUnavailable. Limiter does no I/O. Keep the returned value, and share it.
//
// All processes should give the same rate; a later Limiter.Set changes it for all. The name may be any bytes, but
// not empty; see docs/keyspace.md, and docs/limiter.md for what is promised.
func (c *Client) Limiter(name string, options ...limiter.Option) *Limiter {
	return limiter.New(c.engine, name, c.mapped(name), func() limiter.Semaphore {
		return c.PermitSemaphore(name + ":concurrent")
	}, options)
}

// NewMultiLock returns all of the locks as one lock. It is granted when all of them are granted, and lost when one of
// them is lost. The locks may be of any kind except a PermitSemaphore's Locker, and of one Client or several.
// NewMultiLock does no I/O. The returned value may be kept and shared.
//
// All callers take the locks in the same order, whatever order they give them in. See
// multilock.MultiLock.
func NewMultiLock(lockers ...Locker) *MultiLock {
	return multilock.New(lockers...)
}

// NewQuorum returns the lock of that name on independent servers, one behind each Client. It is
// granted when a majority of the servers grant it, so it outlives the failure of fewer than half.
// On each server it is Mutex(name, options...). NewQuorum does no I/O. The returned value may be
// kept and shared.
//
// Take an odd number of servers: an even number outlives no more failures than one server fewer. The
// servers must not replicate each other, and all processes must give the same servers and the same
// lease. Each server keeps a marker, "holdfast_quorum". A server that lost its data has no marker, and
// does not count until the lease is over. See docs/quorum.md.
func NewQuorum(name string, clients []*Client, options ...LeaseOption) *Quorum {
	longest := time.Duration(0)
	for _, c := range clients {
		if c != nil {
			longest = max(longest, hold.NewSettings(c.config.defaults, options).Length)
		}
	}
	return NewQuorumOf(name, clients, longest, func(c *Client) Locker { return c.Mutex(name, options...) })
}

// NewQuorumOf is NewQuorum for locks of another kind, such as the read sides of read/write
// locks, or for leases of different lengths. member makes the lock on one server. longest is
// the longest lease that any caller takes on any of the locks. name appears only in errors and
// spans.
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
