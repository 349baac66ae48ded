// The Client: what its synchronizers share.

package holdfast

import (
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/rlock"
)

// Client makes the synchronizers of one Redis. They share what it owns: some
// connections, one subscription service and one goroutine that renews every
// lease. A process needs one Client for each Redis; it may be used by any number
// of goroutines.
type Client struct {
	engine *engine.Engine
	config config
	common lease.Settings // of what is made without options of its own
	err    error          // why it cannot be used; each call returns it
}

// New returns a Client on the Redis of a go-redis client: *redis.Client, also
// one made by redis.NewFailoverClient, or *redis.ClusterClient. It does no I/O.
// A client that cannot be served (nil, a Ring, one of another type) makes every
// call fail with an error that matches ErrBadArgument.
//
// Holdfast works on connections of its own, made with rdb's options, and never
// closes rdb. Hooks added to rdb are not run on them.
func New(rdb redis.UniversalClient, options ...Option) *Client {
	c := &Client{config: config{log: slog.New(slog.DiscardHandler)}}
	for _, o := range options {
		if o != nil {
			o(&c.config)
		}
	}
	c.common = lease.NewSettings(c.config.defaults)
	tel, err := telemetry.New(c.config.tracers, c.config.meters)
	if err != nil {
		c.config.log.Warn("holdfast: no metrics", "error", err)
	}
	c.engine, c.err = engine.New(rdb, tel, c.config.log)
	return c
}

// Close ends the Client: waits return with ErrClosed, leases end with ErrClosed
// and are renewed no more, and the Client's goroutines and connections end
// before it returns. What is still held stays in Redis until its lease runs out,
// since work may be going on under it; release before closing. Close is safe to
// call twice and concurrently. It takes as long as it takes to clean up after
// calls that were cancelled just before: 1.5 s at the most. A log handler, a provider
// or another function of yours that blocks makes it 1.6 s, and is left behind.
func (c *Client) Close() error {
	if c.err != nil {
		return nil
	}
	return c.engine.Close()
}

// Mutex returns the reentrant lock of that name. It does no I/O, and the value
// may be kept and shared. options override the Client's defaults.
//
// The name may be any bytes, but not empty; see docs/keyspace.md.
func (c *Client) Mutex(name string, options ...lease.Option) *rlock.Mutex {
	if c.err != nil {
		return rlock.Broken(name, c.err)
	}
	return rlock.New(c.engine, name, c.mapped(name), c.settings(options))
}

// Striped returns n locks under one name, for many keys: each key uses one of the locks
// (segment locks). It does no I/O, and the value may be kept and shared. See rlock.Striped
// for how keys are spread over the locks.
func (c *Client) Striped(name string, n int, options ...lease.Option) *rlock.Striped {
	if c.err != nil {
		return rlock.BrokenStriped(name, c.err)
	}
	return rlock.NewStriped(c.engine, name, n, c.mapped, c.settings(options))
}

// settings returns the settings of what is made with those options.
func (c *Client) settings(options []lease.Option) *lease.Settings {
	if len(options) == 0 {
		return &c.common
	}
	s := lease.NewSettings(c.config.defaults, options)
	return &s
}

// mapped returns the name in Redis of a name in the program.
func (c *Client) mapped(name string) string {
	if c.config.mapName == nil || name == "" {
		return name
	}
	return c.config.mapName(name)
}
