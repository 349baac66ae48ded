// shards shows who has which shard.

package operators

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/shards"
)

func TestShards(t *testing.T) {
	server := server(t)
	run(t, server, "shards", "orders").want(t, 0, "orders: no member")
	ctx, stop := context.WithCancel(t.Context())
	s := client(t, server, "").Shards("orders", 4, shards.Identity("pod-1"), shards.Value("10.0.0.1:80"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Run(ctx, func(ctx context.Context, _ *shards.Shard) error { <-ctx.Done(); return nil })
	}()
	defer func() { stop(); <-done }()
	redistest.Eventually(t, time.Minute, "the shards are somebody's", func() error {
		info, err := s.Owner(ctx, "order 7")
		if err == nil && !info.Owned() {
			err = fmt.Errorf("shard %d is nobody's", info.Shard)
		}
		return err
	})
	run(t, server, "shards", "orders").want(t, 0, "4", "pod-1 (10.0.0.1:80)", "0-3")
	run(t, server, "shards", "orders", "--key", "order 7").want(t, 0, "shard 2: pod-1 (10.0.0.1:80)")
	run(t, server, "shards", "orders", "--json").want(t, 0, `"counts":{"pod-1":4}`)
	run(t, server, "inspect", "orders").want(t, 0, "pod-1", "4 shards: 0-3")
	run(t, server, "inspect", "orders", "--json").want(t, 0, `"shards":"0-3"`)
}
