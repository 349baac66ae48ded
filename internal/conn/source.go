// What the subscription service needs to know about the servers.

package conn

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Wide reports whether a request about key may take effect later than Window after its sending, since
// its server is or was slow.
func (m *Manager) Wide(key string) bool {
	n := m.servers.Known(key)
	return n != nil && n.Wide()
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
	return m.servers.Masters(ctx)
}

// Dial returns a new client for that server, for subscriptions: its dials pass the gate of the
// server. The caller must close it.
func (m *Manager) Dial(home string) (*redis.Client, error) {
	return m.servers.At(home).Client(), nil
}

// DialAtOnce returns a new client for that server, for questions about it. Its dials do not pass the
// gate, so that a question about a server that fails is answered with what is wrong. The caller must
// close it.
func (m *Manager) DialAtOnce(server string) *redis.Client {
	return m.servers.At(server).ClientAtOnce()
}

// Sharded reports whether channels are subscribed to with SSUBSCRIBE.
func (m *Manager) Sharded(ctx context.Context) (bool, error) {
	return m.servers.Sharded(ctx)
}

// Moved records that a subscription on that server failed.
func (m *Manager) Moved(home string) {
	m.servers.Failed(m.servers.At(home))
}

// Forgets reports whether Replaced may be called.
func (m *Manager) Forgets() bool { return m.servers.Forgets() }

// Address returns the address of the Redis that the Manager serves, taken from the options of
// the client that it was made from. It is the same in every process with the same
// configuration. Servers behind Sentinels look the same by it.
func (m *Manager) Address() string { return m.servers.Address }
