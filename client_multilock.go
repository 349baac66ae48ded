package holdfast

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/multilock"
)

// NewMultiLock returns all of the locks as one, which is granted when all are, and
// lost with the first of them. They may be of any kind, and of one Client or of
// several. It does no I/O, and the value may be kept and shared.
//
// In whatever order they are given, all callers take them in the same one. See
// multilock.MultiLock.
func NewMultiLock(lockers ...Locker) *multilock.MultiLock {
	return multilock.New(lockers...)
}

// NewQuorum returns the lock of that name on independent servers, one behind each
// Client: it is granted when a majority of them grant it, and so outlives the
// failure of fewer than half. On each server it is Mutex(name, options...). It
// does no I/O, and the value may be kept and shared.
//
// The servers must not replicate each other, and all processes must give the same
// servers and the same lease. Each server keeps a marker, "holdfast_quorum", by
// which one that lost its data is kept out until the lease is over. See
// docs/quorum.md.
func NewQuorum(name string, clients []*Client, options ...LeaseOption) *multilock.Quorum {
	longest := time.Duration(0)
	for _, c := range clients {
		if c != nil {
			longest = max(longest, lease.NewSettings(c.config.defaults, options).Length())
		}
	}
	return NewQuorumOf(name, clients, longest, func(c *Client) Locker { return c.Mutex(name, options...) })
}

// NewQuorumOf is NewQuorum on locks of another kind, such as the read sides of
// read/write locks, or with leases that differ. member makes the lock on one
// server; longest is the longest lease that anybody takes on any of them. name
// only stands in errors and spans.
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
