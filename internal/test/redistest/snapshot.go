// A snapshot is the whole state of a server as text, so that a test can compare before with after.

package redistest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Snapshot returns all keys that rdb reaches (in a cluster, those of all masters), with type,
// expiry and value, as sorted text: equal texts mean equal states. The expiry is the point in
// time in ms (-1 means none), because a remaining time would differ between two looks. Servers
// before Redis 7 do not report it; there it is just "set".
func Snapshot(t testing.TB, rdb redis.UniversalClient) string {
	t.Helper()
	return snapshot(t, rdb, "pexpiretime")
}

func snapshot(t testing.TB, rdb redis.UniversalClient, expiry string) string {
	t.Helper()
	ctx := context.Background()
	keys, err := Keys(ctx, rdb, "")
	if err != nil {
		t.Fatalf("redistest: snapshot: %v", err)
	}
	var b strings.Builder
	for _, key := range keys {
		kind, err := rdb.Type(ctx, key).Result()
		if err != nil {
			t.Fatalf("redistest: snapshot of %q: %v", key, err)
		}
		if kind == "none" {
			continue // it has expired since the scan
		}
		lines, err := valueLines(ctx, rdb, key, kind)
		if err != nil {
			t.Fatalf("redistest: snapshot of %q: %v", key, err)
		}
		fmt.Fprintf(&b, "%q %s %s=%s\n", key, kind, expiry, expiryOf(ctx, rdb, key, expiry))
		for _, line := range lines {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	return b.String()
}

func expiryOf(ctx context.Context, rdb redis.UniversalClient, key, command string) string {
	ms, err := rdb.Do(ctx, command, key).Int64()
	if err == nil {
		return fmt.Sprint(ms)
	}
	if ms, err = rdb.Do(ctx, "pttl", key).Int64(); err != nil || ms < 0 {
		return "-1"
	}
	return "set"
}

// Keys returns the keys of all masters that match the pattern, sorted. "" matches all.
func Keys(ctx context.Context, rdb redis.UniversalClient, pattern string) ([]string, error) {
	var keys []string
	err := eachMaster(ctx, rdb, func(ctx context.Context, c *redis.Client) error {
		found := c.Scan(ctx, 0, pattern, 1000).Iterator()
		for found.Next(ctx) {
			keys = append(keys, found.Val())
		}
		return found.Err()
	})
	slices.Sort(keys)
	return slices.Compact(keys), err // SCAN may name a key twice
}

// eachMaster calls f for one master after the other: ForEachMaster would call it concurrently.
func eachMaster(ctx context.Context, rdb redis.UniversalClient, f func(context.Context, *redis.Client) error) error {
	switch c := rdb.(type) {
	case *redis.Client:
		return f(ctx, c)
	case *redis.ClusterClient:
		turn := make(chan struct{}, 1)
		return c.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			turn <- struct{}{}
			defer func() { <-turn }()
			return f(ctx, c)
		})
	}
	return fmt.Errorf("redistest: not for a %T", rdb)
}

func valueLines(ctx context.Context, rdb redis.UniversalClient, key, kind string) ([]string, error) {
	switch kind {
	case "string":
		value, err := rdb.Get(ctx, key).Result()
		return []string{fmt.Sprintf("%q", value)}, err
	case "hash":
		fields, err := rdb.HGetAll(ctx, key).Result()
		var lines []string
		for field, value := range fields {
			lines = append(lines, fmt.Sprintf("%q = %q", field, value))
		}
		slices.Sort(lines)
		return lines, err
	case "list":
		values, err := rdb.LRange(ctx, key, 0, -1).Result()
		return quoted(values), err
	case "set":
		members, err := rdb.SMembers(ctx, key).Result()
		slices.Sort(members)
		return quoted(members), err
	case "zset":
		members, err := rdb.ZRangeWithScores(ctx, key, 0, -1).Result()
		var lines []string
		for _, m := range members {
			lines = append(lines, fmt.Sprintf("%.17g %q", m.Score, m.Member))
		}
		return lines, err
	}
	return nil, fmt.Errorf("type %s is not known here", kind)
}

func quoted(values []string) []string {
	lines := make([]string, len(values))
	for i, v := range values {
		lines[i] = fmt.Sprintf("%q", v)
	}
	return lines
}
