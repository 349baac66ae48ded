// The check at the end of a test: no key, channel or connection is left.

package redistest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// leftBehindWithin bounds how long a clean-up that is under way, or a channel that lingers, may
// take.
const leftBehindWithin = 10 * time.Second

// LeftBehind fails t unless, within 10 s, every master that rdb reaches has no key except those
// with an allowed prefix, no channel with a subscriber, and no connection except rdb's own. So
// other clients must be closed before. The servers' connections to each other and the harness's
// connections do not count. rdb may be [Proc.Admin], which also looks at a replica. An embedded
// server does not list its clients, so there connections are not checked. LeftBehind also works
// inside a synctest bubble.
func LeftBehind(t testing.TB, rdb redis.UniversalClient, allowedKeyPrefixes ...string) {
	t.Helper()
	err := poll(leftBehindWithin, func() error {
		return eachMaster(context.Background(), rdb, func(ctx context.Context, c *redis.Client) error {
			if err := leftKeys(ctx, c, allowedKeyPrefixes); err != nil {
				return err
			}
			if err := leftChannels(ctx, c); err != nil {
				return err
			}
			return leftConnections(ctx, c)
		})
	})
	if err != nil {
		t.Errorf("redistest: left behind: %v", err)
	}
}

func leftKeys(ctx context.Context, c *redis.Client, allowed []string) error {
	keys, err := Keys(ctx, c, "")
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(keys, func(key string) bool {
		return slices.ContainsFunc(allowed, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	if len(left) > 0 {
		return fmt.Errorf("%d keys: %q", len(left), left[:min(len(left), 10)])
	}
	return nil
}

func leftChannels(ctx context.Context, c *redis.Client) error {
	channels, err := c.PubSubChannels(ctx, "*").Result()
	if err != nil {
		return err
	}
	// Servers before Redis 7 and the embedded one have no sharded channels.
	sharded, err := c.PubSubShardChannels(ctx, "*").Result()
	if err != nil && !isUnknown(err) {
		return err
	}
	var left []string
	for _, channel := range append(channels, sharded...) {
		if channel != "__sentinel__:hello" { // the sentinels' own
			left = append(left, channel)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%d channels with subscribers: %q", len(left), left[:min(len(left), 10)])
	}
	return nil
}

func leftConnections(ctx context.Context, c *redis.Client) error {
	list, err := c.ClientList(ctx).Result()
	if isUnknown(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var others []string
	for line := range strings.Lines(list) {
		if !ofServers(line) {
			others = append(others, line)
		}
	}
	if own := poolSize(c); len(others) > own {
		return fmt.Errorf("%d connections, of which %d are the caller's:\n%s", len(others), own, strings.Join(others, ""))
	}
	return nil
}

// poolSize counts the client's pooled connections, except those that ofServers ignores. A
// cluster's node clients keep the connections for pipelines in a pool of their own. The
// harness's connections do not count.
func poolSize(c *redis.Client) int {
	if c.Options().ClientName == adminName {
		return 0
	}
	stats := c.PoolStats()
	n := int(stats.TotalConns)
	if stats.PipelineStats != nil {
		n += int(stats.PipelineStats.TotalConns)
	}
	return n
}

// ofServers reports whether a line of CLIENT LIST is the harness's own connection, a
// sentinel's, a link between master and replica, or one over which a cluster node has moved
// keys to this one; a node keeps that for 10 s after the last key.
func ofServers(line string) bool {
	for field := range strings.FieldsSeq(line) {
		name, value, _ := strings.Cut(field, "=")
		switch {
		case name == "name" && (value == adminName || strings.HasPrefix(value, "sentinel-")):
			return true
		case name == "flags" && strings.ContainsAny(value, "MS"):
			return true
		case name == "cmd" && value == "restore-asking":
			return true
		}
	}
	return false
}

// isUnknown reports whether the server does not know the command or subcommand.
func isUnknown(err error) bool {
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "unknown")
}
