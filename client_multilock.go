package holdfast

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/multilock"
)

// NewMultiLock returns all of the locks as one lock. It is granted when all of them are
// granted, and lost when the first of them is lost. The locks may be of any kind, and of one
// Client or of several. NewMultiLock does no I/O. The returned value may be kept and shared.
//
// All callers take the locks in the same order, whatever order they give them in. See
// multilock.MultiLock.
func NewMultiLock(lockers ...Locker) *multilock.MultiLock {
	return multilock.New(lockers...)
}

// NewQuorum returns the lock of that name on independent servers, one behind each Client. It is
// granted when a majority of the servers grant it, and so outlives the failure of fewer than
// half. On each server it is Mutex(name, options...). NewQuorum does no I/O. The returned value
// may be kept and shared.
//
// The servers must not replicate each other, and all processes must give the same servers and
// the same lease. Each server keeps a marker, "holdfast_quorum". A server that lost its data
// has no marker, and does not count until the lease is over. See docs/quorum.md.
func NewQuorum(name string, clients []*Client, options ...LeaseOption) *multilock.Quorum {
	longest := time.Duration(0)
	for _, c := range clients {
		if c != nil {
			longest = max(longest, lease.NewSettings(c.config.defaults, options).Length())
		}
	}
	return NewQuorumOf(name, clients, longest, func(c *Client) Locker { return c.Mutex(name, options...) })
}

// NewQuorumOf is NewQuorum for locks of another kind, such as the read sides of read/write
// locks, or for leases of different lengths. member makes the lock on one server. longest is
// the longest lease that any caller takes on any of the locks. name appears only in errors and
// spans.
func NewQuorumOf(name string, clients []*Client, longest time.Duration, member func(c *Client) Locker) *multilock.Quorum {
	members := make([]multilock.Member, 0, len(clients))
	for i, c := range clients {
		if c == nil {
			return multilock.BrokenQuorum(name, fmt.Errorf("Client %d is nil: %w", i, errs.BadArgument))
		}
		if c.err != nil {
			return multilock.BrokenQuorum(name, c.err)
		}
		members = append(members, multilock.Member{Engine: c.engine, Locker: member(c)})
	}
	return multilock.NewQuorum(name, members, longest)
}
