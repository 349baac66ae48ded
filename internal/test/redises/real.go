// Several real servers.

package redises

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Real starts n servers. clients makes a Client for each, as one process has them.
func Real(t *testing.T, n int) (servers []*redistest.Proc, clients func() []*holdfast.Client) {
	t.Helper()
	for range n {
		servers = append(servers, redistest.Server(t))
	}
	return servers, func() (all []*holdfast.Client) {
		for _, s := range servers {
			rdb := redis.NewClient(&redis.Options{Addr: s.Addr()})
			t.Cleanup(func() { _ = rdb.Close() })
			all = append(all, clienttest.OpenClient(t, rdb))
		}
		return all
	}
}
