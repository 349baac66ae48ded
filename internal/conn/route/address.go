// The address by which one Redis is known from others.

package route

import (
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// ServerOf returns the address by which rdb's server is known in telemetry: a host and a port, or the path of a
// socket. In a cluster that is the first that the program has given; behind Sentinels rdb does not show it, and
// ServerOf returns "".
func ServerOf(rdb redis.UniversalClient) string {
	switch c := rdb.(type) {
	case *redis.Client:
		if c != nil && c.Options().Addr != sentinelAddr {
			return c.Options().Addr
		}
	case *redis.ClusterClient:
		if c != nil && c.Options().ClusterSlots == nil && len(c.Options().Addrs) > 0 {
			return slices.Min(c.Options().Addrs)
		}
	}
	return ""
}

func addressOf(rdb redis.UniversalClient) string {
	switch c := rdb.(type) {
	case *redis.Client:
		o := c.Options()
		return fmt.Sprintf("%s/%d", o.Addr, o.DB)
	case *redis.ClusterClient:
		if c.Options().ClusterSlots != nil {
			return sentinelAddr + "/0"
		}
		return strings.Join(slices.Sorted(slices.Values(c.Options().Addrs)), ",")
	default:
		return ""
	}
}
