package holdfast

import (
	"github.com/holdfast-go/holdfast/latch"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/semaphore"
)

// Semaphore returns the counting semaphore of that name, which is Redisson's RSemaphore: any
// number of permits, which nobody owns. TrySetPermits sets the number of permits, once.
// Semaphore does no I/O. The returned value may be kept and shared.
//
// A permit that a dead process had taken is never returned; where that matters, use a
// PermitSemaphore.
//
// The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) Semaphore(name string) *semaphore.Semaphore {
	if c.err != nil {
		return semaphore.Broken(name, c.err)
	}
	return semaphore.New(c.engine, name, c.mapped(name))
}

// PermitSemaphore returns the semaphore with leased permits of that name, which is Redisson's
// RPermitExpirableSemaphore. Each Acquire returns a Lease, and the permits of a dead process
// are free again when its lease is over. TrySetPermits or SetPermits sets the number of
// permits. PermitSemaphore does no I/O. The returned value may be kept and shared. options
// override the Client's defaults.
//
// The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) PermitSemaphore(name string, options ...lease.Option) *semaphore.PermitSemaphore {
	if c.err != nil {
		return semaphore.BrokenPermits(name, c.err)
	}
	return semaphore.NewPermits(c.engine, name, c.mapped(name), lease.NewSettings(c.config.defaults, options))
}

// Latch returns the countdown latch of that name, which is Redisson's RCountDownLatch. It is
// set to a count; each worker that is done counts it down; waiters wait until the count is
// zero. Latch does no I/O. The returned value may be kept and shared.
//
// The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) Latch(name string) *latch.Latch {
	if c.err != nil {
		return latch.Broken(name, c.err)
	}
	return latch.New(c.engine, name, c.mapped(name))
}
