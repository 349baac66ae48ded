package holdfast

import (
	"github.com/holdfast-go/holdfast/fairlock"
	"github.com/holdfast-go/holdfast/lease"
)

// FairMutex returns the fair lock of that name. It is reentrant, as Mutex is, and granted in
// the order of arrival across all processes. It is the same lock as Mutex(name), but only
// waiters that came through FairMutex stand in the queue one by one; Mutex has one place for
// each process. FairMutex does no I/O. The returned value may be kept and shared. options
// override the Client's defaults.
//
// Fairness costs a request for each grant, where a Mutex under contention may do with fewer:
// use a FairMutex where order matters. See docs/fairlock.md.
func (c *Client) FairMutex(name string, options ...lease.Option) *fairlock.Mutex {
	if c.err != nil {
		return fairlock.Broken(name, c.err)
	}
	return fairlock.New(c.engine, name, c.mapped(name), c.settings(options))
}
