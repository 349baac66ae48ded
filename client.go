// The Client, and what all of its synchronizers share.

package holdfast

import (
	"context"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/telemetry"
	"github.com/holdfast-go/holdfast/lease"
)

// Client makes the synchronizers of one Redis. They share the Client's connections, its
// subscription service and the one goroutine that schedules the renewal of every lease. A
// process needs one Client for each Redis. A Client may be used by any number of goroutines.
type Client struct {
	engine *engine.Engine
	config config
	space  keys.Space    // of all keys and channels
	common hold.Settings // of synchronizers made without options of their own
}

// New returns a Client for the Redis behind rdb, a go-redis client: a *redis.Client, including
// one made by redis.NewFailoverClient, or a *redis.ClusterClient. New does no I/O. If rdb
// cannot be served (it is nil, a Ring, or of another type), every call fails with an error that
// matches ErrBadArgument.
//
// Holdfast makes connections of its own with rdb's options, and never closes rdb. Hooks added
// to rdb do not run on those connections.
func New(rdb redis.UniversalClient, options ...Option) *Client {
	c := &Client{config: config{log: slog.New(slog.DiscardHandler)}}
	for _, o := range options {
		if o != nil {
			o(&c.config)
		}
	}
	c.common = hold.NewSettings(c.config.defaults)
	tel, err := telemetry.New(c.config.tracers, c.config.meters, c.config.group, conn.ServerOf(rdb))
	if err != nil {
		c.config.log.Warn("holdfast: no metrics", "error", err)
	}
	c.engine = newEngine(rdb, tel, &c.config)
	c.space = c.engine.Keys
	return c
}

// newEngine returns the engine of a Client with that config. If something is wrong, every call of
// the engine fails.
func newEngine(rdb redis.UniversalClient, tel *telemetry.Telemetry, config *config) *engine.Engine {
	space, err := keys.InSpace(config.keyPrefix)
	if err != nil {
		return engine.Broken(err)
	}
	e, err := engine.New(rdb, tel, config.log)
	if err != nil {
		return engine.Broken(err)
	}
	e.Keys = space
	if config.identity != "" {
		e.SayWho(config.identity)
	}
	return e
}

// ID returns the first eight characters of the Client's id, by which logs, errors and Inspect show it.
// Each of its Owners, as text, begins with them. They may be logged: nobody can release with them. ID returns ""
// for a Client whose every call fails.
func (c *Client) ID() string {
	if c.engine.Broken() != nil {
		return ""
	}
	return c.engine.Client()[:8]
}

// Close ends the Client. Waits return ErrClosed, leases end with ErrClosed and are no longer
// renewed, and the Client's goroutines and connections end before Close returns. Close always
// returns nil. It may be called twice, and concurrently.
//
// Close does not release anything. A lock that is still held stays in Redis until its lease runs
// out, because its work may still be going on: release before closing.
//
// Close waits for the clean-up after calls that were cancelled just before, for at most 1.5 s, or
// longer beside a server that answers late. It waits for at most 1.6 s for a function of yours that
// blocks, such as a log handler.
func (c *Client) Close() error {
	if c.engine.Broken() == nil {
		c.engine.Close()
	}
	return nil
}

// Shutdown waits until what the Client holds has been released, and then closes the Client; http.Server's
// Shutdown lets requests finish likewise. While it waits no new lock is granted: Lock, Acquire of leased
// permits, Attach and Tick return ErrClosed, and so do waits that are under way. Work that is under way
// goes on: its leases are renewed and may be extended. With a context that carries a lease of this Client
// it may lock more, and take ticks. A lease on a Quorum counts too, if it holds on this Client's server.
// When the last lease has ended, and its release is answered, Shutdown closes the Client and returns nil.
//
// ctx bounds the wait. If it ends first, Shutdown closes the Client all the same: the leases that are
// left end with ErrClosed, and their locks stay in Redis until they run out. The error matches ctx's
// error, and says how many leases were left. A Close meanwhile ends the Shutdown, which then returns
// nil.
//
// Shutdown does not wait for work whose lease was lost. Calls of Semaphore and Latch, and queries, still
// work until the last lease has ended.
func (c *Client) Shutdown(ctx context.Context) error {
	if c.engine.Broken() != nil {
		return nil
	}
	if err := c.engine.Shutdown(ctx); err != nil {
		return errs.Wrap("shutdown", err)
	}
	return nil
}

func (c *Client) settings(options []lease.Option) *hold.Settings {
	if len(options) == 0 {
		return &c.common
	}
	s := hold.NewSettings(c.config.defaults, options)
	return &s
}

// mapped returns the name in Redis of a name that the program uses.
func (c *Client) mapped(name string) string {
	if c.config.mapName != nil && name != "" {
		name = c.config.mapName(name)
	}
	return c.space.At(name)
}
