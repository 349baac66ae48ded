// This file runs the suite of internal/test/lockertest on every kind of lock over every topology.

package conformance

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/lockertest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// conform runs the suite on all kinds at the same time. open makes the Redis for one kind. The
// goroutine of that kind's test calls open.
func conform(t *testing.T, slots int, open func(t *testing.T, kind string) lockertest.Redis) {
	t.Helper()
	places := make(chan struct{}, slots)
	at := func(t *testing.T, kind string) lockertest.Redis {
		r := open(t, kind)
		r.Slots = places
		return r
	}
	var running sync.WaitGroup
	for _, kind := range lockertest.Kinds {
		running.Go(func() {
			t.Run(kind.Name, func(t *testing.T) { conformKind(t, kind, at(t, kind.Name)) })
		})
	}
	running.Go(func() {
		t.Run("multi", func(t *testing.T) { lockertest.Whole(t, at(t, "multi"), lockertest.Staying) })
	})
	for name, cases := range map[string]func(*testing.T, lockertest.Redis, []string){
		"leader": lockertest.Elections, "once": lockertest.Onces,
	} {
		running.Go(func() {
			t.Run(name, func(t *testing.T) { cases(t, at(t, name), lockertest.Staying) })
		})
	}
	running.Wait()
}

func conformKind(t *testing.T, kind lockertest.Kind, r lockertest.Redis) {
	kind.Keeps = append(slices.Clip(kind.Keeps), lockertest.Staying...)
	lockertest.Run(t, lockertest.Subject{Kind: kind, Redis: r})
}

// realSlots is how many cases run at a time on real servers. The cases wait most of the time, but
// some of them look at the clock.
const realSlots = 16

// reached returns a Redis whose processes have the clients that dial makes.
func reached(onlooker redis.UniversalClient, dial func(t testing.TB) redis.UniversalClient, always ...holdfast.Option) lockertest.Redis {
	return lockertest.Redis{Open: func(t testing.TB) lockertest.Site {
		return lockertest.Site{
			Onlooker: onlooker,
			Process: func(options ...holdfast.Option) *holdfast.Client {
				return holdfast.New(dial(t), append(always, options...)...)
			},
		}
	}}
}

// conformReal runs the suite on real servers, and fails the test if it leaves keys behind that must
// not stay.
func conformReal(t *testing.T, onlooker redis.UniversalClient, dial func(t testing.TB) redis.UniversalClient, always ...holdfast.Option) {
	t.Helper()
	r := reached(onlooker, dial, always...)
	conform(t, realSlots, func(*testing.T, string) lockertest.Redis { return r })
	if !t.Failed() {
		redistest.LeftBehind(t, onlooker, lockertest.Staying...)
	}
}

func TestConformance_Embedded(t *testing.T) {
	turn(t, embedded)
	t.Parallel()
	conformEmbedded(t, redistest.AnyScript)
}

// A server that refuses scripts that publish, as Alibaba's cluster does.
func TestConformance_StrictScripts(t *testing.T) {
	turn(t, embedded)
	t.Parallel()
	conformEmbedded(t, redistest.NoPubSub)
}

func conformEmbedded(t *testing.T, how redistest.Strictness) {
	t.Helper()
	conform(t, 4, func(*testing.T, string) lockertest.Redis {
		return lockertest.Redis{Virtual: true, Open: func(t testing.TB) lockertest.Site {
			mini := redistest.Mini(t)
			mini.CheckScripts(how)
			return lockertest.Site{
				Onlooker: mini.Client(),
				Process: func(options ...holdfast.Option) *holdfast.Client {
					return holdfast.New(mini.Client(), options...)
				},
			}
		}}
	})
}

func TestConformance_Standalone(t *testing.T) {
	t.Parallel()
	s := redistest.Server(t)
	for _, protocol := range []int{3, 2} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			if protocol != 3 {
				turn(t, turns())
			}
			conformReal(t, s.Admin(), func(t testing.TB) redis.UniversalClient {
				return s.Client(t, func(o *redis.Options) { o.Protocol = protocol })
			})
		})
	}
}

func TestConformance_Replicated(t *testing.T) {
	t.Parallel()
	turn(t, turns())
	master := redistest.Server(t, "--repl-diskless-sync-delay", "0")
	host, port, err := net.SplitHostPort(master.Addr())
	redistest.Must(t, err)
	for range 2 {
		redistest.Server(t, "--replicaof", host, port)
	}
	redistest.InSync(t, master, 2)
	conformReal(t, master.Admin(), func(t testing.TB) redis.UniversalClient { return master.Client(t) },
		holdfast.WithReplicas(1))
}

func TestConformance_Sentinel(t *testing.T) {
	t.Parallel()
	turn(t, turns())
	s := redistest.Sentinel(t)
	conformReal(t, s.Master().Admin(), func(t testing.TB) redis.UniversalClient { return s.Client(t) })
}

func TestConformance_Cluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.Cluster(t, 3, 1)
	onlooker := cluster.Client(t)
	for _, tc := range []struct {
		name string
		opt  func(*redis.ClusterOptions)
	}{
		{"sharded", func(*redis.ClusterOptions) {}},
		{"ReadOnly", func(o *redis.ClusterOptions) { o.ReadOnly = true }},
		{"RouteByLatency", func(o *redis.ClusterOptions) { o.RouteByLatency = true }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name != "sharded" {
				turn(t, turns())
			}
			forget(t, cluster)
			conformReal(t, onlooker, func(t testing.TB) redis.UniversalClient { return cluster.Client(t, tc.opt) })
			onlyMastersAsked(t, cluster)
		})
	}
}

// forget makes the servers count their commands from zero again.
func forget(t *testing.T, cluster *redistest.ClusterSet) {
	t.Helper()
	for _, node := range cluster.Nodes() {
		redistest.Must(t, node.Admin().ConfigResetStat(t.Context()).Err())
	}
}

// onlyMastersAsked fails the test if a replica was sent a script, or if a message was sent to the
// whole cluster instead of to one shard. Redis 6.2 has no messages to one shard.
func onlyMastersAsked(t *testing.T, cluster *redistest.ClusterSet) {
	t.Helper()
	var masters, shards int
	sharded := true
	for _, node := range cluster.Nodes() {
		role, err := node.Admin().Info(t.Context(), "replication").Result()
		redistest.Must(t, err)
		stats, err := node.Admin().Info(t.Context(), "commandstats").Result()
		redistest.Must(t, err)
		asked := strings.Contains(stats, "cmdstat_eval")
		if strings.Contains(role, "role:master") {
			if asked {
				masters++
			}
			if strings.Contains(stats, "cmdstat_spublish") {
				shards++
			}
		} else if asked {
			t.Errorf("a replica was sent scripts:\n%s", stats)
		}
		if info, err := node.Admin().Do(t.Context(), "COMMAND", "INFO", "SPUBLISH").Slice(); err != nil {
			t.Fatal(err)
		} else if info[0] == nil {
			sharded = false
			continue
		}
		if strings.Contains(stats, "cmdstat_publish:") {
			t.Errorf("PUBLISH, where there is SPUBLISH:\n%s", stats)
		}
	}
	if masters != 3 || sharded && shards != 3 {
		t.Errorf("%d masters were sent scripts, %d had messages to tell; want 3", masters, shards)
	}
}

// rowOf names the row of docs/connecting.md that has the rights of a kind.
var rowOf = map[string]string{
	"mutex": "Mutex", "stripe": "Striped", "fair": "FairMutex", "priority": "FairMutex", "write": "RWMutex", "read": "RWMutex", "permit": "PermitSemaphore", "slot": "Slots",
	"leader": "Leader", "once": "Once",
	"multi": "FairMutex", // it also uses a Mutex, which needs fewer rights
}

func TestConformance_FewRights(t *testing.T) {
	turn(t, turns())
	t.Parallel()
	every, of := doctest.DocumentedRights(t)
	s := redistest.Server(t)
	conform(t, realSlots, func(t *testing.T, kind string) lockertest.Redis {
		rules := of[rowOf[kind]]
		switch kind {
		case "prefixed":
			rules = []string{"~app:*", "&app:*", "+@all"}
		case "mutex", "fair", "priority", "stripe":
			rules = append(slices.Clip(rules), "~holdfast_lock_asked:{orders:*", "~holdfast_lock_newest:{orders:*")
		}
		if len(rules) == 0 {
			t.Fatalf("docs/connecting.md tells no rights of %s", rowOf[kind])
		}
		as := clienttest.User(t, s, kind, slices.Concat(every, rules)...)
		return reached(s.Admin(), func(t testing.TB) redis.UniversalClient {
			return s.Client(t, as)
		})
	})
	denied, err := s.Admin().Do(t.Context(), "acl", "log").Result()
	redistest.Must(t, err)
	if log, _ := denied.([]any); len(log) > 0 {
		t.Errorf("denied: %v", log)
	}
	if !t.Failed() {
		redistest.LeftBehind(t, s.Admin(), lockertest.Staying...)
	}
}
