// Several real servers.

package redises

import (
	"testing"
	"time"

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

// Free waits until the lock called Name is free on each of the servers in mask.
func Free(t *testing.T, servers []*redistest.Proc, mask int) {
	t.Helper()
	for i, s := range servers {
		if mask&(1<<i) != 0 {
			redistest.Eventually(t, time.Minute, "free", func() error {
				if n, err := s.Admin().Exists(t.Context(), Name).Result(); err != nil || n > 0 {
					return holdfast.ErrBusy
				}
				return nil
			})
		}
	}
}

// FreezeAllBut freezes the servers that are not in mask.
func FreezeAllBut(servers []*redistest.Proc, mask int) {
	for i, s := range servers {
		if mask&(1<<i) == 0 {
			s.Freeze()
		}
	}
}
