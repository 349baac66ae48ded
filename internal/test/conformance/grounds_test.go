// This file runs the conformance suite on other grounds: on what lies between a process and its
// Redis in the field. On each ground one kind of lock is tried, a different kind from ground to
// ground. With HOLDFAST_LONG=1 all kinds are tried on each ground.

package conformance

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// open makes the Redis of a ground, and returns it with the prefixes of the keys that stay there
// besides the usual ones.
var conformanceGrounds = []struct {
	name string
	open func(t *testing.T) (r lockertest.Redis, keeps []string)
}{
	{"a lag of 30 ms", func(t *testing.T) (lockertest.Redis, []string) {
		s := redistest.Server(t)
		proxy := redistest.Proxy(t, s.Addr(), redistest.Lagging(15*time.Millisecond, 5*time.Millisecond))
		return reached(s.Admin(), func(t testing.TB) redis.UniversalClient { return proxy.Client(t) }), nil
	}},
	{"TLS, and credentials that rotate", func(t *testing.T) (lockertest.Redis, []string) {
		authority := redistest.NewAuthority(t)
		s, addr := redistest.TLSServer(t, authority)
		users := []string{"first", "second", "third"}
		for _, name := range users {
			clienttest.User(t, s, name, "~*", "&*", "+@all")
		}
		var connections atomic.Int64
		return reached(s.Admin(), func(t testing.TB) redis.UniversalClient {
			return s.Client(t, func(o *redis.Options) {
				o.Addr, o.TLSConfig = addr, &tls.Config{RootCAs: authority.Trust}
				o.CredentialsProviderContext = func(context.Context) (string, string, error) {
					return users[connections.Add(1)%int64(len(users))], "secret", nil
				}
			})
		}), nil
	}},
	{"Sentinel, NewFailoverClusterClient", func(t *testing.T) (lockertest.Redis, []string) {
		s := redistest.Sentinel(t)
		options := redis.FailoverOptions{MasterName: redistest.MasterName, SentinelAddrs: s.SentinelAddrs()}
		return reached(s.Master().Admin(), func(t testing.TB) redis.UniversalClient {
			rdb := redis.NewFailoverClusterClient(&options)
			t.Cleanup(func() { _ = rdb.Close() })
			return rdb
		}), nil
	}},
	{"a cluster on IPv6", func(t *testing.T) (lockertest.Redis, []string) {
		c := redistest.IPv6Cluster(t, 3, 1)
		return reached(c.Client(t), func(t testing.TB) redis.UniversalClient { return c.Client(t) }), nil
	}},
	{"names with braces and bytes that are no text", func(t *testing.T) (lockertest.Redis, []string) {
		c := redistest.Cluster(t, 3, 0)
		odd := func(name string) string { return "\x00}\xff{" + name + "}{" }
		return reached(c.Client(t), func(t testing.TB) redis.UniversalClient { return c.Client(t) },
			holdfast.WithNameMapper(odd)), []string{"\x00}\xff{orders:permit:"}
	}},
	{"a million keys of strangers", func(t *testing.T) (lockertest.Redis, []string) {
		s := redistest.Server(t)
		strangers(t, s.Admin(), 1_000_000)
		return reached(s.Admin(), func(t testing.TB) redis.UniversalClient { return s.Client(t) }), []string{"stranger:"}
	}},
}

// strangers fills a server with n keys that are not Holdfast's.
func strangers(t *testing.T, rdb *redis.Client, n int) {
	t.Helper()
	const batch = 10_000
	for from := 0; from < n; from += batch {
		_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for i := range batch {
				p.Set(t.Context(), fmt.Sprintf("stranger:%d", from+i), "x", 0)
			}
			return nil
		})
		redistest.Must(t, err)
	}
}

func TestConformance_Grounds(t *testing.T) {
	t.Parallel()
	for i, ground := range conformanceGrounds {
		t.Run(ground.name, func(t *testing.T) {
			turn(t, turns())
			r, keeps := ground.open(t)
			r.Slots = make(chan struct{}, realSlots)
			first := i % len(lockertest.Kinds)
			kinds := slices.Concat(lockertest.Kinds[first:], lockertest.Kinds[:first])
			for _, kind := range kinds[:redistest.Count(t, len(kinds))] {
				kind.Keeps = keeps
				t.Run(kind.Name, func(t *testing.T) { conformKind(t, kind, r) })
			}
		})
	}
}

// turns has their tests, without the beginning of the names.
func turns() []string {
	all := []string{"Standalone/RESP2", "Replicated", "Sentinel", "Cluster/ReadOnly", "Cluster/RouteByLatency", "FewRights"}
	for _, ground := range conformanceGrounds {
		all = append(all, "Grounds/"+strings.ReplaceAll(ground.name, " ", "_"))
	}
	return all
}

// embedded are the tests on an embedded server. They take turns among themselves.
var embedded = []string{"Embedded", "StrictScripts"}

// turn skips t, one of those that take turns, unless it is its turn.
func turn(t *testing.T, all []string) {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv("HOLDFAST_TURN"), 10, 32)
	if err != nil || os.Getenv("HOLDFAST_LONG") != "" {
		return
	}
	i, mine := slices.Index(all, strings.TrimPrefix(t.Name(), "TestConformance_")), n%uint64(len(all))
	switch {
	case i < 0:
		t.Fatalf("it is not among those that take turns: %q", all)
	case uint64(i) != mine:
		t.Skipf("with HOLDFAST_TURN=%d it is the turn of %s", n, all[mine])
	}
	t.Logf("with HOLDFAST_TURN=%d it is its turn", n)
}
