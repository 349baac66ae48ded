// The topology behind a go-redis client, and that of one server.

package route

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/dial"
	"github.com/holdfast-go/holdfast/internal/conn/server"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// topology knows which server has which key.
type topology interface {
	// Node returns the node of the master that has key. It may do I/O.
	Node(ctx context.Context, key string) (*server.Node, error)
	// Known returns what Node returns, or nil if Node might do I/O or wait.
	Known(key string) *server.Node
	// At returns the node of the server at addr.
	At(addr string) *server.Node
	// Moved records that the server at addr has key's slot now.
	Moved(key, addr string)
	// Failed records that a server did not answer as a master does.
	Failed(n *server.Node)
	// Sharded reports whether channels belong to slots. It may do I/O.
	Sharded(ctx context.Context) (bool, error)
	// Probed reports whether Sharded no longer does I/O.
	Probed() bool
	// Masters returns the addresses of all masters. It may do I/O.
	Masters(ctx context.Context) ([]string, error)
	// Forgets reports whether another server may take the place of one unseen, as behind Sentinels.
	Forgets() bool
	// Follows reports whether MOVED and ASK can be followed.
	Follows() bool
	// Elsewhere reports whether a server other than n's has key by now. It does no I/O.
	Elsewhere(n *server.Node, key string) bool
	// Needs returns the greatest of the servers' Needs.
	Needs() time.Duration
	// Sweep ends connections that have not been used for long.
	Sweep(now time.Time)
	// Interrupt ends all calls that callers wait for; only clean-ups go on.
	Interrupt()
	Close()
}

// single is the topology of one server.
type single struct{ only *server.Node }

func newSingle(o redis.Options, fs *dial.Feeds, events *server.Events) single {
	options := server.Options(o, fs)
	return single{server.New(options.Addr, options, fs.Of(o.StreamingCredentialsProvider), events)}
}

func (s single) Node(context.Context, string) (*server.Node, error) { return s.only, nil }
func (s single) Known(string) *server.Node                          { return s.only }
func (s single) At(string) *server.Node                             { return s.only }
func (s single) Moved(string, string)                               {}
func (s single) Failed(*server.Node)                                {}
func (s single) Sharded(context.Context) (bool, error)              { return false, nil }
func (s single) Probed() bool                                       { return true }
func (s single) Masters(context.Context) ([]string, error)          { return []string{s.only.Addr}, nil }
func (s single) Forgets() bool                                      { return false }
func (s single) Follows() bool                                      { return false }
func (s single) Elsewhere(*server.Node, string) bool                { return false }
func (s single) Needs() time.Duration                               { return s.only.Needs() }
func (s single) Sweep(now time.Time)                                { s.only.Sweep(now) }
func (s single) Interrupt()                                         { s.only.Interrupt() }
func (s single) Close()                                             { s.only.Close() }

// newTopology returns the topology behind rdb. It does no I/O. The error matches errs.BadArgument if rdb is
// nil or of a type that cannot be served.
func newTopology(rdb redis.UniversalClient, fs *dial.Feeds, events *server.Events) (topology, error) {
	switch c := rdb.(type) {
	case *redis.Client:
		switch {
		case c == nil:
		case c.Options().Addr == sentinelAddr:
			return newFailover(*c.Options(), fs, events), nil
		default:
			return newSingle(*c.Options(), fs, events), nil
		}
	case *redis.ClusterClient:
		switch {
		case c == nil:
		case c.Options().ClusterSlots != nil:
			return newFailover(led(*c.Options()), fs, events), nil
		default:
			return newCluster(*c.Options(), fs, events), nil
		}
	case nil:
	default:
		return nil, fmt.Errorf("a go-redis client of type %T cannot be served, only *redis.Client and *redis.ClusterClient: %w", rdb, errs.BadArgument)
	}
	return nil, fmt.Errorf("the go-redis client is nil: %w", errs.BadArgument)
}
