package holdfast

import (
	"github.com/holdfast-go/holdfast/fairlock"
	"github.com/holdfast-go/holdfast/lease"
)

// FairMutex returns the fair lock of that name: reentrant, as Mutex is, and
// granted in the order of arrival across all processes. It is the same lock as
// Mutex(name), but only those who ask by FairMutex stand in the queue. It does no
// I/O, and the value may be kept and shared. options override the Client's
// defaults.
//
// Fairness costs a request for each grant, where a Mutex under contention may do
// with less: take it where order matters. See docs/fairlock.md.
func (c *Client) FairMutex(name string, options ...lease.Option) *fairlock.Mutex {
	if c.err != nil {
		return fairlock.Broken(name, c.err)
	}
	return fairlock.New(c.engine, name, c.mapped(name), c.settings(options))
}
