// The topology behind a go-redis client, and the options of our own connections.

package conn

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// topology knows which server has which key.
type topology interface {
	// node returns the node of the master that has key. It may do I/O.
	node(ctx context.Context, key string) (*node, error)
	// known returns what node returns, or nil if node might do I/O or wait.
	known(key string) *node
	// at returns the node of the server at addr.
	at(addr string) *node
	// moved records that the server at addr has key's slot now.
	moved(key, addr string)
	// failed records that a server did not answer as a master does.
	failed(n *node)
	// sharded reports whether channels belong to slots. It may do I/O.
	sharded(ctx context.Context) (bool, error)
	// probed reports whether sharded no longer does I/O.
	probed() bool
	// masters returns the addresses of all masters. It may do I/O.
	masters(ctx context.Context) ([]string, error)
	// follows reports whether MOVED and ASK can be followed.
	follows() bool
	// elsewhere reports whether a server other than n's has key by now. It does no I/O.
	elsewhere(n *node, key string) bool
	// sweep ends connections that have not been used for long.
	sweep(now time.Time)
	// interrupt ends all calls that callers wait for; only clean-ups go on.
	interrupt()
	close()
}

func newTopology(rdb redis.UniversalClient, fs *feeds, events *Events) (topology, error) {
	switch c := rdb.(type) {
	case *redis.Client:
		if c != nil {
			options := wireOptions(*c.Options(), fs)
			feed := fs.of(c.Options().StreamingCredentialsProvider)
			if options.Addr == sentinelAddr {
				f := newFailover(options, events)
				f.only.setFeed(feed)
				return f, nil
			}
			s := single{newNode(options.Addr, options)}
			s.only.setFeed(feed)
			s.only.gate.events = events
			return s, nil
		}
	case *redis.ClusterClient:
		switch {
		case c == nil:
		case c.Options().ClusterSlots != nil:
			options := led(*c.Options())
			f := newFailover(wireOptions(options, fs), events)
			f.only.setFeed(fs.of(options.StreamingCredentialsProvider))
			return f, nil
		default:
			return newCluster(*c.Options(), fs, events), nil
		}
	case nil:
	default:
		return nil, fmt.Errorf("a go-redis client of type %T cannot be served, only *redis.Client and *redis.ClusterClient: %w", rdb, errs.BadArgument)
	}
	return nil, fmt.Errorf("the go-redis client is nil: %w", errs.BadArgument)
}

// Bounds of a wire's I/O. ioTimeout is how long a server is given for a reply at first: see pace.
const (
	ioTimeout   = time.Second
	dialTimeout = 2 * time.Second
	// longestReply is how long a server is given at the most, if the program's own client waits for
	// longer or without end.
	longestReply = 10 * time.Second
)

// wireOptions makes the options of a wire from those of the user's client: the same server,
// credentials and TLS, but one connection, short timeouts and no retries. docs/connecting.md
// says what becomes of each option.
func wireOptions(o redis.Options, fs *feeds) *redis.Options {
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.DialTimeout = shorter(o.DialTimeout, dialTimeout)
	o.ReadTimeout = shorter(o.ReadTimeout, longestReply) // a link gives up sooner: see pace
	o.WriteTimeout = shorter(o.WriteTimeout, longestReply)
	o.ContextTimeoutEnabled = true

	// Two, though there is never more than one: go-redis starts to dial by itself, on a
	// goroutine of its own, once as many dials have failed as the pool has places.
	o.PoolSize, o.MaxConcurrentDials = 2, 1
	o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 0, 0, 0
	o.PipelinePoolSize = -1
	o.PoolTimeout = ioTimeout

	o.Limiter = nil // the program's circuit breaker says nothing about renewals
	o.DisableIdentity = true
	o.MaintNotificationsConfig = noMaintenance()
	o.ClientSideCache, o.ClientSideCacheConfig = nil, nil
	o.AutoPipelineOptions = nil
	o.PushNotificationProcessor = nil

	o.CredentialsProviderContext = credentialsOf(o, fs)
	o.CredentialsProvider, o.StreamingCredentialsProvider = nil, nil
	if onConnect := o.OnConnect; onConnect != nil {
		o.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
			_, err := guarded(ctx, "OnConnect", func() (struct{}, error) { return struct{}{}, onConnect(ctx, cn) }, nil)
			return err
		}
	}
	return &o
}

// credentialsOf returns the function that supplies a connection's credentials, in the order in
// which go-redis looks for it; nil if the credentials are in the options themselves.
func credentialsOf(o redis.Options, fs *feeds) func(context.Context) (string, string, error) {
	var ask func(context.Context) (string, string, error)
	switch {
	case o.StreamingCredentialsProvider != nil:
		return fs.of(o.StreamingCredentialsProvider).credentials
	case o.CredentialsProviderContext != nil:
		ask = o.CredentialsProviderContext
	case o.CredentialsProvider != nil:
		ask = func(context.Context) (string, string, error) { //nolint:unparam // ask is of that type
			username, password := o.CredentialsProvider()
			return username, password, nil
		}
	default:
		return nil
	}
	type credentials struct{ username, password string }
	return func(ctx context.Context) (string, string, error) {
		c, err := guarded(ctx, "CredentialsProvider", func() (c credentials, err error) {
			c.username, c.password, err = ask(ctx)
			return c, err
		}, nil)
		return c.username, c.password, err
	}
}

// setFeed gives a new node the feed of its streamed credentials.
func (n *node) setFeed(f *feed) { n.feed, n.replicated.feed = f, f }

// noMaintenance turns off go-redis's notifications of maintenance. With them on, go-redis looks up
// the name of each server while it makes a client, also a name that is none, such as that of a
// failover client.
func noMaintenance() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// shorter returns the user's timeout if it is set and shorter than ours.
func shorter(users, ours time.Duration) time.Duration {
	if users > 0 && users < ours {
		return users
	}
	return ours
}

// single is the topology of one server.
type single struct{ only *node }

func (s single) node(context.Context, string) (*node, error) { return s.only, nil }
func (s single) known(string) *node                          { return s.only }
func (s single) at(string) *node                             { return s.only }
func (s single) moved(string, string)                        {}
func (s single) failed(*node)                                {}
func (s single) sharded(context.Context) (bool, error)       { return false, nil }
func (s single) probed() bool                                { return true }
func (s single) masters(context.Context) ([]string, error)   { return []string{s.only.addr}, nil }
func (s single) follows() bool                               { return false }
func (s single) elsewhere(*node, string) bool                { return false }
func (s single) sweep(now time.Time)                         { s.only.sweep(now) }
func (s single) interrupt()                                  { s.only.interrupt() }
func (s single) close()                                      { s.only.close() }
