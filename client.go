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

// Client makes the synchronizers of one Redis. All synchronizers of a Client share its connections, its
// subscriptions, and the one goroutine that schedules the renewal of every lease. A process needs one
// Client for each Redis. Any number of goroutines may use a Client.
type Client struct {
	engine *engine.Engine
	config config
	space  keys.Space    // of all keys and channels
	common hold.Settings // of synchronizers made without options of their own
}

// New returns a Client for the Redis to which rdb connects. rdb is a go-redis client: a *redis.Client,
// which redis.NewFailoverClient also returns, or a *redis.ClusterClient. New does no I/O. If Holdfast
// cannot use rdb, because rdb is nil, a Ring, or of another type, every call of the Client fails with an
// error that matches ErrBadArgument.
//
// Holdfast opens its own connections, with rdb's options, and never closes rdb. Hooks that were added to
// rdb do not run on Holdfast's connections.
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

// ID returns the first eight characters of the Client's id. Logs, errors and Inspect show the Client by
// these characters, and the text of each of its Owners begins with them. They may be logged, because nobody
// can release a lock with them alone. If every call of the Client fails, because of a wrong argument of
// New, ID returns "".
func (c *Client) ID() string {
	if c.engine.Broken() != nil {
		return ""
	}
	return c.engine.Client()[:8]
}

// Close ends the Client. Calls that wait return ErrClosed. Leases end with ErrClosed and are no longer
// renewed. When Close returns, the Client's goroutines and connections have ended. Close always returns
// nil. It may be called several times, and from several goroutines at once.
//
// Close does not release anything, because the work under a lock may still be going on. A lock that is
// still held stays in Redis until its lease runs out. So release your locks before you call Close.
//
// A call that was cancelled just before Close may still have to clean up. Close waits for such clean-ups
// for at most 1.5 s, or longer if a server answers late. If a function of yours blocks, such as a log
// handler, Close waits for that function for at most 1.6 s.
func (c *Client) Close() error {
	if c.engine.Broken() == nil {
		c.engine.Close()
	}
	return nil
}

// Shutdown waits until everything that the Client holds has been released, and then closes the Client.
// While Shutdown waits, the Client grants no new lock: Lock, Acquire of leased permits, Attach and Tick
// return ErrClosed, and calls that were already waiting return ErrClosed too. Work under a lease goes on:
// its lease is renewed and may be extended. With a context that carries a lease of this Client, the work
// may also lock more and call Tick. Shutdown also waits for a lease on a Quorum if that lease is held on
// this Client's server. When the last lease has ended, and Redis has answered its release, Shutdown closes
// the Client and returns nil.
//
// ctx bounds the wait. If ctx ends first, Shutdown closes the Client anyway: the leases that are left end
// with ErrClosed, and their locks stay in Redis until they run out. Then Shutdown returns an error that
// matches ctx's error and says how many leases were left. If Close is called during a Shutdown, the
// Shutdown ends and returns nil.
//
// Shutdown does not wait for work whose lease was lost. Until the last lease has ended, calls of Semaphore
// and Latch, and queries, still work.
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
