package holdfast

import (
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/rwlock"
)

// RWMutex returns the read/write lock of that name: any number of readers hold it together, or
// one writer alone. It does no I/O. The returned value may be kept and shared. options override
// the Client's defaults, for both sides.
//
// The name may be any bytes, but not empty. If it has braces, they must make a hash tag by
// Redis's rule; see docs/keyspace.md. A Mutex of the same name excludes an RWMutex, but the two
// do not wake each other.
func (c *Client) RWMutex(name string, options ...lease.Option) *rwlock.RWMutex {
	if c.err != nil {
		return rwlock.Broken(name, c.err)
	}
	return rwlock.New(c.engine, name, c.mapped(name), lease.NewSettings(c.config.defaults, options))
}
