// The Service keeps its promises against redis-server itself, in real time.

package pubsub

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// startRedis runs a redis-server until the test ends.
func startRedis(t *testing.T, args ...string) (rdb *redis.Client, server *redistest.Proc) {
	t.Helper()
	server = redistest.Server(t, args...)
	return server.Client(t), server
}

// realSource is a Source over servers, which it finds by address.
type realSource struct {
	sharded bool
	user    string

	mu   sync.Mutex
	home func(channel string) string
}

func (s *realSource) Home(_ context.Context, channel string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.home(channel), nil
}

func (s *realSource) Sharded(context.Context) (bool, error) { return s.sharded, nil }
func (s *realSource) Moved(string)                          {}

func (s *realSource) Dial(home string) (*redis.Client, error) {
	return redis.NewClient(&redis.Options{Addr: home, Username: s.user, Password: s.user}), nil
}

func newRealService(t *testing.T, rdb *redis.Client, cfg Config) *Service {
	t.Helper()
	s := New(&realSource{home: func(string) string { return rdb.Options().Addr }}, cfg)
	t.Cleanup(func() { s.Close() })
	return s
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func channels(t *testing.T, rdb *redis.Client) []string {
	t.Helper()
	names, err := rdb.PubSubChannels(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestRealClientKill(t *testing.T) {
	rdb, _ := startRedis(t)
	s := newRealService(t, rdb, Config{})
	var subs []*Subscription
	for i := range 100 {
		subs = append(subs, s.Subscribe(fmt.Sprint("ch", i)))
	}
	for _, sub := range subs {
		signalledWithin(t, sub, 5*time.Second)
	}
	for range 5 {
		killed, err := rdb.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Result()
		if err != nil || killed != 1 {
			t.Fatalf("killed %d subscription connections (%v), want 1", killed, err)
		}
		for _, sub := range subs {
			signalledWithin(t, sub, 5*time.Second)
		}
		rdb.Publish(t.Context(), "ch7", "0")
		signalledWithin(t, subs[7], 5*time.Second)
	}
}

func TestRealChannelsEmptyAfterLinger(t *testing.T) {
	rdb, _ := startRedis(t)
	s := newRealService(t, rdb, Config{Linger: 100 * time.Millisecond})
	keep := s.Subscribe("keep")
	signalledWithin(t, keep, 5*time.Second)
	for i := range 250 {
		sub := s.Subscribe(fmt.Sprint("ch", i))
		signalledWithin(t, sub, 5*time.Second)
		sub.Close()
	}
	eventually(t, "only keep is left", func() bool { return slices.Equal(channels(t, rdb), []string{"keep"}) })
	keep.Close()
	eventually(t, "no channels are left", func() bool { return len(channels(t, rdb)) == 0 })
	eventually(t, "no connection but this one is left", func() bool {
		return strings.Count(rdb.ClientList(t.Context()).Val(), "\n") == 1
	})
}

func TestRealDeniedChannel(t *testing.T) {
	rdb, _ := startRedis(t)
	err := rdb.Do(t.Context(), "ACL", "SETUSER", "u", "on", ">u", "+@all", "resetchannels", "&ok*").Err()
	if err != nil {
		t.Fatal(err)
	}
	s := New(&realSource{user: "u", home: func(string) string { return rdb.Options().Addr }},
		Config{DeniedBackoff: 50 * time.Millisecond})
	defer s.Close()

	denied := s.Subscribe("denied")
	for i := range 20 {
		signalledWithin(t, s.Subscribe(fmt.Sprint("ok", i)), 5*time.Second)
	}
	if len(denied.C()) != 0 {
		t.Fatal("a denied channel was signalled")
	}
	if err := rdb.Do(t.Context(), "ACL", "SETUSER", "u", "allchannels").Err(); err != nil {
		t.Fatal(err)
	}
	signalledWithin(t, denied, 5*time.Second)
}

func TestRealFrozenServer(t *testing.T) {
	rdb, server := startRedis(t)
	s := newRealService(t, rdb, Config{})
	signalledWithin(t, s.Subscribe("ch"), 5*time.Second)
	server.Freeze()
	s.Subscribe("another")
	pulse := redistest.FeelPulse(t)
	start := time.Now()
	s.Close()
	pulse.Within(t, "Close while the server was frozen", start, 500*time.Millisecond)
}

// A slot moves from one master to another while a waiter waits on its channel.
func TestRealSlotMoves(t *testing.T) {
	a := startCluster(t)
	b := startCluster(t)
	host, port, _ := net.SplitHostPort(b.Options().Addr)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(a.ClusterAddSlotsRange(ctx, 0, keys.Slots-1).Err())
	must(a.Do(ctx, "CLUSTER", "MEET", host, port).Err())
	for _, rdb := range []*redis.Client{a, b} {
		eventually(t, "the cluster is up", func() bool {
			info := rdb.ClusterInfo(ctx).Val()
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:2")
		})
	}

	const name = "{moves}"
	slot := keys.Slot(name)
	src := &realSource{sharded: true, home: func(string) string { return a.Options().Addr }}
	s := New(src, Config{})
	defer s.Close()
	moves, stays := s.Subscribe(name), s.Subscribe("{stays}")
	signalledWithin(t, moves, 5*time.Second)
	signalledWithin(t, stays, 5*time.Second)

	src.mu.Lock()
	src.home = func(channel string) string {
		if channel == name {
			return b.Options().Addr
		}
		return a.Options().Addr
	}
	src.mu.Unlock()
	target := b.ClusterMyID(ctx).Val()
	must(b.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", target).Err())
	must(a.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", target).Err())

	signalledWithin(t, moves, 5*time.Second)
	must(b.SPublish(ctx, name, "0").Err())
	signalledWithin(t, moves, 5*time.Second)
	must(a.SPublish(ctx, "{stays}", "0").Err())
	signalledWithin(t, stays, 5*time.Second)
}

// startCluster runs a node of a cluster.
func startCluster(t *testing.T) *redis.Client {
	t.Helper()
	rdb, _ := startRedis(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000")
	return rdb
}
