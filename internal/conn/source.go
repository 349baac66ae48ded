// What the subscription service needs to know about the servers.

package conn

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Wide reports whether a request about key may take effect later than Window after its sending, since
// its server is or was slow.
func (m *Manager) Wide(key string) bool {
	n := m.topology.known(key)
	return n != nil && n.gate.pace.wide(time.Now())
}

// Home returns the server on which to subscribe to channel: the master of its slot where
// channels are sharded, otherwise one server that is the same for all channels.
func (m *Manager) Home(ctx context.Context, channel string) (string, error) {
	sharded, err := m.Sharded(ctx)
	if err != nil {
		return "", err
	}
	if !sharded {
		channel = "holdfast" // any one server, but the same for all
	}
	return m.Node(ctx, channel)
}

// Masters returns the addresses of all masters.
func (m *Manager) Masters(ctx context.Context) ([]string, error) {
	return m.topology.masters(ctx)
}

// Dial returns a new client for that server, for subscriptions: its dials pass the gate of the
// server. The caller must close it.
func (m *Manager) Dial(home string) (*redis.Client, error) {
	n := m.topology.at(home)
	return n.client(n.pass), nil
}

// DialAtOnce returns a new client for that server, for questions about it. Its dials do not pass the
// gate, so that a question about a server that fails is answered with what is wrong. The caller must
// close it.
func (m *Manager) DialAtOnce(server string) *redis.Client {
	n := m.topology.at(server)
	return n.client(bounded(n.options.Dialer))
}

// pass dials when the gate allows it, for a connection on which no request is sent. If it succeeds
// after a failure, the next dial need not pause, because that may be for requests: only their answers
// show that the server serves.
func (n *node) pass(ctx context.Context, _, _ string) (net.Conn, error) {
	p, err := n.gate.enter(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := n.reachOut(ctx)
	n.gate.leave(p, err != nil && ctx.Err() == nil)
	if err == nil {
		n.gate.hurry()
	}
	return conn, err
}

// client returns a go-redis client that dials by itself.
func (n *node) client(dial dialer) *redis.Client {
	options := *n.options
	options.ReadTimeout, options.WriteTimeout = n.gate.pace.patience(), n.gate.pace.patience()
	options.Dialer = quiet(dial)
	options.Protocol = 2 // with RESP3 go-redis looks for pushes, and prints what a full server says instead
	return redis.NewClient(&options)
}

// Sharded reports whether channels are subscribed to with SSUBSCRIBE.
func (m *Manager) Sharded(ctx context.Context) (bool, error) {
	return m.topology.sharded(ctx)
}

// Moved records that a subscription on that server failed.
func (m *Manager) Moved(home string) {
	m.topology.failed(m.topology.at(home))
}
