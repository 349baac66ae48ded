// What a server says of the keys that it has dropped without being asked to.

package inspect

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
)

// Servers are asked again and again what they have dropped. The zero Servers has no connections.
type Servers struct{ clients map[string]*redis.Client }

// Account is what each server has said: which run of it this is, and how many keys it has evicted in it. A server that
// could not be asked is not in it.
type Account map[string]string

// Ask asks those servers.
func (s *Servers) Ask(ctx context.Context, m *conn.Manager, servers []string) Account {
	if s.clients == nil {
		s.clients = make(map[string]*redis.Client)
	}
	account := make(Account, len(servers))
	for _, server := range servers {
		rdb, known := s.clients[server]
		if !known {
			rdb = m.DialAtOnce(server)
			s.clients[server] = rdb
		}
		info, err := rdb.Info(ctx).Result()
		if err != nil {
			continue // it does not answer, or the user may not ask that
		}
		Answered(ctx)
		account[server] = field(info, "run_id") + " " + field(info, "evicted_keys")
	}
	return account
}

// Close closes the connections.
func (s *Servers) Close() {
	for _, rdb := range s.clients {
		_ = rdb.Close()
	}
}

// MayHaveDropped reports whether a server has evicted keys, or has begun anew, between two accounts, as far as both say.
func (a Account) MayHaveDropped(later Account) bool {
	for server, said := range later {
		if before, known := a[server]; known && said != before {
			return true
		}
	}
	return false
}

// field returns the value of a field of INFO; "" if it is not there.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), name+":"); is {
			return value
		}
	}
	return ""
}
