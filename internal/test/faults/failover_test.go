// Masters die, stand still or are replaced, and slots move, while locks are held and contended. Every kind of client of
// Sentinels is served.

package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// contend has four callers lock and release a lock, over and over, through the clients in turn. more waits for so many
// more grants that one was asked for after its call.
func contend(t *testing.T, name string, option holdfast.LeaseOption, clients ...*holdfast.Client) (more, end func()) {
	var grants atomic.Int64
	var ended atomic.Bool
	var callers sync.WaitGroup
	for k := range 4 {
		m := clients[k%len(clients)].Mutex(name, option)
		callers.Go(func() {
			for !ended.Load() {
				l, err := m.Lock(clienttest.Generous(t))
				if err != nil {
					t.Errorf("Lock: %v", err)
					continue
				}
				grants.Add(1)
				time.Sleep(time.Millisecond)
				err = l.Release(clienttest.Generous(t))
				if err != nil && !errors.Is(err, holdfast.ErrLost) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Release: %v", err)
				}
			}
		})
	}
	more = func() {
		before := grants.Load()
		redistest.Eventually(t, time.Minute, "grants", func() error {
			if n := grants.Load() - before; n <= 4 {
				return fmt.Errorf("%d", n)
			}
			return nil
		})
	}
	return more, func() {
		ended.Store(true)
		callers.Wait()
	}
}

// vouched asks Redis about each lease. It fails the test unless each lease has survived.
func vouched(t testing.TB, leases map[string]*holdfast.Lease, length time.Duration) {
	t.Helper()
	for name, l := range leases {
		if err := l.Extend(clienttest.Generous(t), length); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// failoverLease is the length of a lease that outlives a failover.
const failoverLease = 15 * time.Second

// contendedLease is the length of the leases on the contended lock. It is short: if a release has
// not reached the promoted master, the hold stays there for the rest of its lease.
const contendedLease = 2 * time.Second

// replicated waits until n replicas have what the master has.
func replicated(t testing.TB, master *redistest.Proc, n int) {
	t.Helper()
	got, err := master.Admin().Do(t.Context(), "WAIT", n, 60_000).Int()
	if err != nil || got < n {
		t.Fatalf("WAIT %d: %d, %v", n, got, err)
	}
}

// failover is a set of servers of which one fails over.
type failover struct {
	nodes      []*redistest.Proc
	client     func() redis.UniversalClient
	prefix     string // of the names on the master that fails
	replicated func()
	fail       func() // returns when there is a new master
	settle     func()
}

// outlive fails the test unless twenty renewed leases outlive the failover, and callers of a contended lock
// are granted it before and after.
func (f failover) outlive(t *testing.T) {
	clienttest.LeaveNothingOn(t, f.nodes)
	a, b := clienttest.OpenClient(t, f.client()), clienttest.OpenClient(t, f.client())
	leases := clienttest.GrabMany(t, a, f.prefix, 20, holdfast.Renewed(failoverLease))
	f.replicated()
	more, end := contend(t, "contended", holdfast.Renewed(contendedLease), a, b)
	more()
	f.fail()
	more()
	renewed(t, leases)
	vouched(t, leases, failoverLease)
	f.settle()
	end()
	vouched(t, leases, failoverLease)
	clienttest.GiveBackAll(t, leases)
}

func TestFailover(t *testing.T) {
	sentinel := func(fail func(*redistest.SentinelSet) (frozen *redistest.Proc)) func(t *testing.T) failover {
		return func(t *testing.T) failover {
			s := redistest.Sentinel(t)
			f := failover{nodes: s.Nodes(), client: func() redis.UniversalClient { return s.Client(t) }, prefix: "failover"}
			f.replicated = func() { replicated(t, s.Master(), 2) }
			f.fail = func() {
				frozen := fail(s)
				s.Master()
				if frozen != nil {
					frozen.Thaw()
				}
			}
			f.settle = s.Settle // a running former master loses its data
			return f
		}
	}
	cluster := func(fail func(*redistest.ClusterSet)) func(t *testing.T) failover {
		return func(t *testing.T) failover {
			s := redistest.Cluster(t, 3, 1)
			f := failover{nodes: s.Nodes(), client: func() redis.UniversalClient { return s.Client(t) }, prefix: "failover{contended}"}
			f.replicated = func() { replicated(t, s.MasterOf("contended"), 1) }
			f.fail = func() { fail(s); s.MasterOf("contended") }
			f.settle = func() {}
			return f
		}
	}
	for name, of := range map[string]func(t *testing.T) failover{
		"Sentinel, planned": sentinel(func(s *redistest.SentinelSet) *redistest.Proc { s.Failover(); return nil }), // it serves on
		"Sentinel, killed":  sentinel(func(s *redistest.SentinelSet) *redistest.Proc { s.KillMaster(); return nil }),
		"Sentinel, frozen":  sentinel((*redistest.SentinelSet).FreezeMaster), // it takes itself for the master when it thaws
		"Cluster, planned":  cluster(func(s *redistest.ClusterSet) { s.Failover("contended") }),
		"Cluster, killed":   cluster(func(s *redistest.ClusterSet) { s.KillMasterOf("contended") }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for round := range redistest.Count(t, 10) {
				t.Run(fmt.Sprint(round), func(t *testing.T) { of(t).outlive(t) })
			}
		})
	}
}

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
