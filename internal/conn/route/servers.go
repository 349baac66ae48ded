// The servers behind one go-redis client.

package route

import (
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn/dial"
	"github.com/holdfast-go/holdfast/internal/conn/server"
)

// Servers are those behind one go-redis client, and what leads to each.
type Servers struct {
	topology
	Address string
	feeds   *dial.Feeds
}

// New returns the servers behind rdb. It does no I/O. The error matches errs.BadArgument if rdb is
// nil or of a type that cannot be served. events hears what is found out about the servers.
func New(rdb redis.UniversalClient, log *slog.Logger, events *server.Events) (*Servers, error) {
	fs := dial.NewFeeds(log)
	t, err := newTopology(rdb, fs, events)
	if err != nil {
		return nil, err
	}
	return &Servers{topology: t, Address: addressOf(rdb), feeds: fs}, nil
}

// Close closes all connections, and ends the streams of credentials.
func (s *Servers) Close() {
	s.topology.Close()
	s.feeds.Close()
}
