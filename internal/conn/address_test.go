// How a Client's server is named in telemetry.

package conn_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
)

func TestTheNameOfAServer(t *testing.T) {
	var none *redis.Client
	for want, rdb := range map[string]redis.UniversalClient{
		"redis.internal:6380": redis.NewClient(&redis.Options{Addr: "redis.internal:6380"}),
		"/run/redis.sock":     redis.NewClient(&redis.Options{Network: "unix", Addr: "/run/redis.sock"}),
		"a:7000":              redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"b:7000", "a:7000"}}),
		"": redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: "mymaster", SentinelAddrs: []string{"a:26379"},
		}),
	} {
		if got := conn.ServerOf(rdb); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		_ = rdb.Close()
	}
	for _, rdb := range []redis.UniversalClient{nil, none} {
		if got := conn.ServerOf(rdb); got != "" {
			t.Errorf("%q for a client that is nil", got)
		}
	}
}
