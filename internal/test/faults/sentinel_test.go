// A planned failover leaves the former master running, and for about ten seconds that server still
// acts as a master.

package faults

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// A Client that connected before the failover and a Client that connected after it lock on the same
// master, though the former master would still grant.
func TestAPlannedFailoverIsFollowed(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t)
	idle, busy := clienttest.OpenClient(t, s.Client(t)), clienttest.OpenClient(t, s.Client(t))
	for _, c := range []*holdfast.Client{idle, busy} {
		clienttest.GiveBack(t, clienttest.Grab(t, c.Mutex("warm")))
	}
	s.Failover()
	told := time.Now()
	for time.Since(told) < 2*time.Second {
		clienttest.GiveBack(t, clienttest.Grab(t, busy.Mutex("warm")))
		time.Sleep(20 * time.Millisecond)
	}
	for _, early := range []*holdfast.Client{idle, busy} {
		late := clienttest.OpenClient(t, s.Client(t))
		l := clienttest.Grab(t, early.Mutex("split"))
		if _, err := late.Mutex("split").TryLock(t.Context()); !errors.Is(err, holdfast.ErrBusy) {
			t.Errorf("a new Client's TryLock of what an old one holds: %v", err)
		}
		clienttest.GiveBack(t, l)
	}
}

// Every kind of Sentinel client is served. It makes no connections only to ask, it leaves the
// former master within 2 s, and a release by a client of another kind wakes its waiters at once.
func TestEachClientOfSentinelsIsServed(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t)
	universal := func(o redis.UniversalOptions) redis.UniversalClient {
		o.MasterName, o.Addrs = redistest.MasterName, s.SentinelAddrs()
		return redis.NewUniversalClient(&o)
	}
	failover := &redis.FailoverOptions{MasterName: redistest.MasterName, SentinelAddrs: s.SentinelAddrs()}
	made := map[string]redis.UniversalClient{
		"NewFailoverClient":                 redis.NewFailoverClient(failover),
		"NewFailoverClusterClient":          redis.NewFailoverClusterClient(failover),
		"NewUniversalClient":                universal(redis.UniversalOptions{}),
		"NewUniversalClient, RouteRandomly": universal(redis.UniversalOptions{RouteRandomly: true}),
		"NewUniversalClient, IsClusterMode": universal(redis.UniversalOptions{IsClusterMode: true}),
	}
	if !redistest.RaceDetector { // go-redis measures latencies while it still sets the node's options
		made["NewUniversalClient, RouteByLatency"] = universal(redis.UniversalOptions{RouteByLatency: true})
	}
	clients := make(map[string]*holdfast.Client)
	for kind, rdb := range made {
		t.Cleanup(func() { _ = rdb.Close() })
		clients[kind] = clienttest.OpenClient(t, rdb)
		clienttest.GiveBack(t, clienttest.Grab(t, clients[kind].Mutex("warm")))
	}
	other := clienttest.OpenClient(t, s.Client(t))
	master := s.Master().Admin()
	for kind, c := range clients {
		wokenAtOnce(t, kind, c, other)
		wokenAtOnce(t, "to "+kind, other, c)
	}

	connected := received(t, master)
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		for _, c := range clients {
			clienttest.GiveBack(t, clienttest.Grab(t, c.Mutex("warm")))
		}
	}
	// The Sentinels connect as well, and so does the test when it looks, but both do so rarely.
	if n := received(t, master) - connected; n > 10 {
		t.Errorf("%d connections to the master in 5 s of use, of %d Clients", n, len(clients))
	}

	s.Failover()
	told := time.Now()
	for time.Since(told) < 2*time.Second {
		for _, c := range clients {
			clienttest.GiveBack(t, clienttest.Grab(t, c.Mutex("warm")))
		}
		time.Sleep(20 * time.Millisecond)
	}
	for kind, c := range clients {
		late := clienttest.OpenClient(t, s.Client(t))
		l := clienttest.Grab(t, c.Mutex("split"))
		if _, err := late.Mutex("split").TryLock(t.Context()); !errors.Is(err, holdfast.ErrBusy) {
			t.Errorf("%s: a new Client's TryLock of what it holds: %v", kind, err)
		}
		clienttest.GiveBack(t, l)
	}
}

// wokenAtOnce fails the test unless waiters of a hear of releases by b. Of ten waiters, at least
// half must be granted before a poll would have come.
func wokenAtOnce(t *testing.T, what string, a, b *holdfast.Client) {
	t.Helper()
	early := 0
	for range 10 {
		l := clienttest.Grab(t, b.Mutex("passed"))
		done := make(chan time.Time, 1)
		go func() {
			clienttest.GiveBack(t, clienttest.Grab(t, a.Mutex("passed")))
			done <- time.Now()
		}()
		time.Sleep(100 * time.Millisecond)
		released := time.Now()
		clienttest.GiveBack(t, l)
		if (<-done).Sub(released) < 200*time.Millisecond {
			early++
		}
	}
	if early < 5 {
		t.Errorf("%s: %d of 10 waiters were woken by the release", what, early)
	}
}

// received returns how many connections a server has taken.
func received(t *testing.T, server *redis.Client) int {
	t.Helper()
	info, err := server.Info(t.Context(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(info, "total_connections_received:")
	line, _, _ := strings.Cut(after, "\r\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
