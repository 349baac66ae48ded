// When a server leaves the cluster, the Manager closes its connections to that server.

package conn

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// The servers of movingSlots.
const first, second = "10.0.0.1:6379", "10.0.0.2:6379"

// movingSlots is a cluster of embedded servers. low and high have half of the slots each.
type movingSlots struct {
	mu        sync.Mutex
	servers   map[string]*redistest.FaultProxy
	low, high string
}

func (m *movingSlots) slots(context.Context) ([]redis.ClusterSlot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return []redis.ClusterSlot{
		{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: m.low}}},
		{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: m.high}}},
	}, nil
}

func (m *movingSlots) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return m.servers[addr].Dial(ctx, network, addr)
}

// moveTo gives the slots to the servers, and has the table reloaded.
func (m *movingSlots) moveTo(c *cluster, low, high string) {
	m.mu.Lock()
	m.low, m.high = low, high
	m.mu.Unlock()
	time.Sleep(time.Second) // soon after one reload go-redis begins no other
	c.client.ReloadState(context.Background())
	time.Sleep(time.Second)
}

// onMovingSlots runs test with a Manager on a cluster whose slots the first server has.
func onMovingSlots(t *testing.T, test func(t *testing.T, slots *movingSlots, c *cluster, m *Manager)) {
	redistest.Bubble(t, func(t *testing.T) {
		slots := &movingSlots{low: first, high: first, servers: map[string]*redistest.FaultProxy{
			first: redistest.Mini(t).Proxy(), second: redistest.Mini(t).Proxy(),
		}}
		fs := &feeds{log: slog.New(slog.DiscardHandler)}
		c := newCluster(redis.ClusterOptions{ClusterSlots: slots.slots, Dialer: slots.dial, ConnMaxIdleTime: -1}, fs, nil)
		m := newManager(c, first, fs, fs.log)
		m.events = new(Events)
		c.events = m.events
		defer time.Sleep(time.Second) // go-redis may still be about to reload the table
		defer m.Close()
		test(t, slots, c, m)
	})
}

// try runs a call on key, as a caller's and as a renewal.
func (m *Manager) try(t *testing.T, key string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	n, err := m.topology.node(ctx, key)
	if err != nil {
		return err
	}
	return errors.Join(m.Run(ctx, callOf(key)), m.RunOnce(ctx, time.Second, n.addr, []*Call{callOf(key)})[0])
}

func callOf(key string) *Call { return &Call{Script: answers, Keys: []string{key}} }

// answers replies that all is done.
var answers = NewScript("s", "return {1, 0}", Timeless)

func TestConnectionsToAServerThatHasLostItsSlotsAreClosed(t *testing.T) {
	onMovingSlots(t, func(t *testing.T, slots *movingSlots, c *cluster, m *Manager) {
		use := func() {
			t.Helper()
			if err := m.try(t, "k"); err != nil {
				t.Fatal(err)
			}
		}
		use()
		slots.moveTo(c, second, second)
		use()
		time.Sleep(retireAfter + 2*sweepEvery)
		use()
		c.mu.Lock()
		defer c.mu.Unlock()
		if n := len(c.byAddr); c.byAddr[first] != nil || n != 1 {
			t.Errorf("the server is not forgotten: %d servers are known", n)
		}
		if n := c.byAddr[second]; len(n.wires) != 1 {
			t.Errorf("%d connections to the server that has the slots", len(n.wires))
		}
	})
}

// The owner of a Manager hears that keys are at another server: those of a slot, when a server says that it has
// moved; all, when another server has the slots of one that does not answer. It does not hear of it while that
// one still has them.
func TestKeysThatAnotherServerHasAreDoubted(t *testing.T) {
	onMovingSlots(t, func(t *testing.T, slots *movingSlots, c *cluster, m *Manager) {
		var doubted []string
		m.events.Doubtful = func(d Doubt) {
			for _, key := range []string{"k", "{k}2", "other"} {
				if d.Concerns(key) {
					doubted = append(doubted, key)
				}
			}
		}
		heard := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(doubted, want) {
				t.Errorf("%s: doubted %v, want %v", what, doubted, want)
			}
			doubted = nil
		}
		use := func() { _ = m.try(t, "k") }
		use()
		heard("nothing has happened")

		slots.servers[first].OnCommand(func(redistest.Command) redistest.Fault {
			return redistest.ReplyError("MOVED 12706 " + second)
		})
		if err := m.Run(t.Context(), callOf("k")); err != nil {
			t.Fatal(err)
		}
		heard("a slot has moved", "k", "{k}2")
		slots.servers[first].OnCommand(nil)
		time.Sleep(2 * overlayLife)

		use()
		slots.servers[first].OnCommand(func(redistest.Command) redistest.Fault { return redistest.DropBefore })
		slots.servers[first].Cut()
		use()
		heard("a server is down")
		slots.moveTo(c, second, second)
		heard("its slots are another's", "k", "{k}2", "other")
		slots.servers[first].OnCommand(nil)
	})
}

// Callers of a frozen master wait. Those of the other masters do not.
func TestAFrozenMasterDelaysNobodyElse(t *testing.T) {
	onMovingSlots(t, func(t *testing.T, slots *movingSlots, c *cluster, m *Manager) {
		slots.moveTo(c, first, second)
		const low, high = "b", "a" // in slots 3300 and 15495
		for _, key := range []string{low, high} {
			if err := m.try(t, key); err != nil {
				t.Fatal(err)
			}
		}
		slots.servers[first].OnCommand(func(redistest.Command) redistest.Fault { return redistest.Silence })
		var stuck sync.WaitGroup
		answered := new(atomic.Int64)
		for range 3 * maxWires {
			stuck.Go(func() {
				if err := m.Run(context.Background(), callOf(low)); err != nil {
					t.Error(err)
				}
				answered.Add(1)
			})
		}
		for range 100 {
			time.Sleep(50 * time.Millisecond)
			begun := time.Now()
			if err := m.try(t, high); err != nil || time.Since(begun) != 0 {
				t.Errorf("a call to a healthy master: %v after %v", err, time.Since(begun))
			}
		}
		if answered.Load() != 0 {
			t.Error("a frozen master has answered")
		}
		slots.servers[first].OnCommand(nil)
		stuck.Wait()
	})
}

func TestANodeThatWasGivenUpSendsItsCallersOn(t *testing.T) {
	n := newNode("", &redis.Options{})
	n.renewals.idle = []*wire{{node: n}}
	if !n.inUse() {
		t.Error("an idle connection for renewals would be forgotten, and never closed")
	}
	n.renewals.idle = nil
	if !n.retire() {
		t.Fatal("was not given up, though nothing is on it")
	}
	r := &request{call: &Call{}}
	if w := n.board(r); w != nil || judge(r.err) != anew {
		t.Errorf("%v, %v, want that the caller looks anew", w, r.err)
	}
	if _, err := n.takeRenewals(t.Context()); judge(err) != anew {
		t.Errorf("renewals: %v, want that their caller looks anew", err)
	}
}

// The user's NewClient makes the options of each node. If it panics, that is an error of its node.
func TestTheUsersNewClientMakesTheOptionsOfEachNode(t *testing.T) {
	asked := make(map[string]int)
	c := newCluster(redis.ClusterOptions{
		Addrs:    []string{first},
		Username: "default",
		NewClient: func(o *redis.Options) *redis.Client {
			if asked[o.Addr]++; o.Addr == "10.0.0.3:6379" {
				panic("by the user")
			}
			o.Username = "of " + o.Addr
			return redis.NewClient(o)
		},
	}, &feeds{}, nil)
	defer c.close()
	c.nodeClient(&redis.Options{Addr: first, NodeAddress: first, Username: "default"}).Close()
	for _, addr := range []string{first, second} { // a MOVED leads to the second
		n := c.at(addr)
		if got := n.options; got.Username != "of "+addr || got.Addr != addr {
			t.Errorf("%s is reached as %q at %s", addr, got.Username, got.Addr)
		}
		if c.at(addr) != n || asked[addr] != 1 {
			t.Errorf("NewClient was called %d times for %s", asked[addr], addr)
		}
	}
	if _, err := c.at("10.0.0.3:6379").connect(t.Context()); err == nil || !strings.Contains(err.Error(), "NewClient panicked: by the user") {
		t.Errorf("%v does not say why", err)
	}
}

func TestAServerIsNotGivenUpByHalf(t *testing.T) {
	onMovingSlots(t, func(t *testing.T, slots *movingSlots, c *cluster, m *Manager) {
		if err := m.try(t, "k"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		importing := c.at(second)                      // as an ASK leads to it
		time.Sleep(retireAfter + 500*time.Millisecond) // the sweep before this is too early
		held := make(chan struct{})
		slots.servers[second].OnCommand(func(cmd redistest.Command) redistest.Fault {
			if cmd.Name == "WAIT" {
				return redistest.HoldReply(held)
			}
			return redistest.Pass
		})
		done := make(chan struct{})
		go func() {
			defer close(done)
			r := m.requests.get()
			r.call, r.full = callOf("k"), true
			r.call.Replicas = 1
			importing.forCall(r.call).do(t.Context(), r, nil)
		}()
		time.Sleep(100 * time.Millisecond)
		c.sweep(time.Now())
		close(held)
		<-done
		slots.servers[second].OnCommand(nil)
		slots.moveTo(c, second, second)
		if err := m.try(t, "k"); err != nil {
			t.Error(err)
		}
	})
}
