package holdfast

import (
	"github.com/holdfast-go/holdfast/latch"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/semaphore"
)

// Semaphore returns the counting semaphore of that name, which is Redisson's
// RSemaphore: any number of permits, which nobody owns. How many there are is set
// once, by TrySetPermits. It does no I/O, and the value may be kept and shared.
//
// Who dies with a permit keeps it for good; where that matters take a
// PermitSemaphore.
//
// The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) Semaphore(name string) *semaphore.Semaphore {
	if c.err != nil {
		return semaphore.Broken(name, c.err)
	}
	return semaphore.New(c.engine, name, c.mapped(name))
}

// PermitSemaphore returns the semaphore with leased permits of that name, which is
// Redisson's RPermitExpirableSemaphore: each Acquire returns a Lease, and what a
// dead process held is free again after its lease. How many permits there are is
// set by TrySetPermits or SetPermits. It does no I/O, and the value may be kept and
// shared. options override the Client's defaults.
//
// The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) PermitSemaphore(name string, options ...lease.Option) *semaphore.PermitSemaphore {
	if c.err != nil {
		return semaphore.BrokenPermits(name, c.err)
	}
	return semaphore.NewPermits(c.engine, name, c.mapped(name), lease.NewSettings(c.config.defaults, options))
}

// Latch returns the countdown latch of that name, which is Redisson's
// RCountDownLatch: set to a count, counted down by whoever is done, waited for by
// whoever needs all of them to be. It does no I/O, and the value may be kept and
// shared.
//
// The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) Latch(name string) *latch.Latch {
	if c.err != nil {
		return latch.Broken(name, c.err)
	}
	return latch.New(c.engine, name, c.mapped(name))
}
