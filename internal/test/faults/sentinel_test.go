// Every kind of client of Sentinels is served. A cluster changes under each kind as operators change it, and nothing is lost.

package faults

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// Clients of each kind hear of each other's releases, and follow a planned failover, after which the former
// master would still grant for about ten seconds: those that connected before it exclude a Client that
// connected after it.
func TestEachClientOfSentinelsIsServed(t *testing.T) {
	t.Parallel()
	s := redistest.Sentinel(t)
	universal := func(o redis.UniversalOptions) redis.UniversalClient {
		o.MasterName, o.Addrs = redistest.MasterName, s.SentinelAddrs()
		return redis.NewUniversalClient(&o)
	}
	options := &redis.FailoverOptions{MasterName: redistest.MasterName, SentinelAddrs: s.SentinelAddrs()}
	made := map[string]redis.UniversalClient{
		"NewFailoverClient":                 redis.NewFailoverClient(options),
		"NewFailoverClusterClient":          redis.NewFailoverClusterClient(options),
		"NewUniversalClient":                universal(redis.UniversalOptions{}),
		"NewUniversalClient, RouteRandomly": universal(redis.UniversalOptions{RouteRandomly: true}),
		"NewUniversalClient, IsClusterMode": universal(redis.UniversalOptions{IsClusterMode: true}),
	}
	if !redistest.RaceDetector { // go-redis measures latencies while it still sets the node's options
		made["NewUniversalClient, RouteByLatency"] = universal(redis.UniversalOptions{RouteByLatency: true})
	}
	clients := make(map[string]*holdfast.Client)
	master := s.Master().Admin()
	for kind, rdb := range made {
		t.Cleanup(func() { _ = rdb.Close() })
		clients[kind] = clienttest.OpenClient(t, rdb)
		clienttest.GiveBack(t, clienttest.Grab(t, clients[kind].Mutex("warm")))
		listens(t, kind, clients[kind], master)
	}
	if stats := master.Info(t.Context(), "commandstats").Val(); strings.Contains(stats, "cmdstat_spublish") {
		t.Error("a release was told to one shard, where waiters listen on plain channels")
	}

	s.Failover()
	late := clienttest.OpenClient(t, s.Client(t))
	for kind, c := range clients {
		redistest.Eventually(t, time.Minute, kind+" has left the former master", func() error {
			l := clienttest.Grab(t, c.Mutex("split"))
			defer clienttest.GiveBack(t, l)
			next, err := late.Mutex("split").TryLock(t.Context())
			if err == nil {
				clienttest.GiveBack(t, next)
			}
			return wants(err, holdfast.ErrBusy)
		})
	}
}

// listens fails the test unless a waiter of c listens on a plain channel of the master.
func listens(t *testing.T, kind string, c *holdfast.Client, master *redis.Client) {
	t.Helper()
	name := "passed " + kind
	l := clienttest.Grab(t, c.Mutex(name))
	other := make(chan error, 1)
	go func() { other <- turn(clienttest.Generous(t), c.Mutex(name)) }()
	redistest.Eventually(t, time.Minute, kind+" listens", func() error {
		channels, err := master.PubSubChannels(t.Context(), "*{"+name+"}").Result()
		if err == nil && len(channels) == 0 {
			err = errors.New("not yet")
		}
		return err
	})
	clienttest.GiveBack(t, l)
	if err := <-other; err != nil {
		t.Error(fmt.Errorf("%s: %w", kind, err))
	}
}

// Before operations of each kind's life its slot moves, key by key, or its master fails over as planned. All counts,
// verdicts and tokens stay right. A barrier has no part in it: its life needs to see what is sent.
func TestLivesGoOnWhileAClusterChanges(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 3, 1)
	operations, moved, failed := 0, 0, 0
	for kind, life := range lives() {
		if kind == "barrier" {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			u := &unlucky{direct: cluster.Client(t), t: t, ctx: t.Context(), lease: 30 * time.Second, scripts: world.ScriptNames(t)}
			u.Client, u.onlooker = clienttest.OpenClient(t, cluster.Client(t)), clienttest.OpenClient(t, cluster.Client(t))
			slotOf := kind
			if kind == "once" {
				slotOf += ":k" // the name of its record
			}
			u.live(kind, life, func() (mishap, int) {
				switch operations++; {
				case operations%15 == 8:
					failed++
					cluster.Failover(slotOf)
				case operations%3 == 0:
					moved++
					cluster.MoveSlot(slotOf)
				}
				return mishap{}, 0
			})
		})
	}
	clienttest.Figure(t, "%d slot moves and %d failovers in %d operations: all counts, verdicts and tokens right", moved, failed, operations)
}
