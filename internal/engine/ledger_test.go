// The engine finds out which command publishes a release.

package engine

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestAClusterThatDoesNotSayHowReleasesAreToldIsGuessed(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		proxy := redistest.Mini(t).Proxy()
		proxy.OnCommand(func(c redistest.Command) redistest.Fault {
			if slices.Contains(c.Args, "shardnumsub") {
				return redistest.Silence
			}
			return redistest.Pass
		})
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:6379"}, Dialer: proxy.Dial})
		defer rdb.Close()
		e, err := New(rdb, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		start := time.Now()
		if got := e.Publish(t.Context()); got != "SPUBLISH" {
			t.Errorf("%s, which nobody hears where there is SPUBLISH", got)
		}
		if took := time.Since(start); took != publishPatience {
			t.Errorf("the call waited for %v, want %v", took, publishPatience)
		}
	})
}
