// The servers of a cluster come and go, and their slots move.

package route

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

	"github.com/holdfast-go/holdfast/internal/conn/call"
	"github.com/holdfast-go/holdfast/internal/conn/dial"
	"github.com/holdfast-go/holdfast/internal/conn/server"
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

// onMovingSlots runs test with a cluster whose slots the first server has.
func onMovingSlots(t *testing.T, test func(t *testing.T, slots *movingSlots, c *cluster)) {
	redistest.Bubble(t, func(t *testing.T) {
		slots := &movingSlots{low: first, high: first, servers: map[string]*redistest.FaultProxy{
			first: redistest.Mini(t).Proxy(), second: redistest.Mini(t).Proxy(),
		}}
		c := newCluster(redis.ClusterOptions{ClusterSlots: slots.slots, Dialer: slots.dial, ConnMaxIdleTime: -1}, noFeeds(), new(server.Events))
		defer time.Sleep(time.Second) // go-redis may still be about to reload the table
		defer c.Close()
		test(t, slots, c)
	})
}

// noFeeds are those of a program without streams of credentials.
func noFeeds() *dial.Feeds { return dial.NewFeeds(slog.New(slog.DiscardHandler)) }

// try sends a call on key, as a caller's and as a renewal. A server that does not answer has failed.
func (c *cluster) try(t *testing.T, key string) error {
	t.Helper()
	ctx := redistest.Within(t, 5*time.Second)
	n, err := c.Node(ctx, key)
	if err != nil {
		return err
	}
	o := n.Send(ctx, server.Sending{Call: callOf(key), Manner: server.Manner{Full: true}})
	renewed := n.SendOnce(ctx, []*call.Call{callOf(key)}, func(*call.Script) bool { return false })
	if err = errors.Join(o.Err, renewed[0]); err != nil {
		c.Failed(n)
	}
	return err
}

func callOf(key string) *call.Call { return &call.Call{Script: answers, Keys: []string{key}} }

// answers replies that all is done.
var answers = call.NewScript("s", "return {1, 0}", call.Timeless)

func TestConnectionsToAServerThatHasLostItsSlotsAreClosed(t *testing.T) {
	onMovingSlots(t, func(t *testing.T, slots *movingSlots, c *cluster) {
		redistest.Must(t, c.try(t, "k"))
		slots.moveTo(c, second, second)
		redistest.Must(t, c.try(t, "k"))
		time.Sleep(retireAfter + time.Second)
		c.Sweep(time.Now())
		redistest.Must(t, c.try(t, "k"))
		c.mu.Lock()
		defer c.mu.Unlock()
		if n := len(c.byAddr); c.byAddr[first] != nil || n != 1 {
			t.Errorf("the server is not forgotten: %d servers are known", n)
		}
	})
}

// The owner of a Manager hears that keys are at another server when another has the slots of one that
// does not answer. It does not hear of it while that one still has them.
func TestKeysThatAnotherServerHasAreDoubted(t *testing.T) {
	onMovingSlots(t, func(t *testing.T, slots *movingSlots, c *cluster) {
		var doubted []string
		c.events.Doubtful = func(d server.Doubt) {
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
		redistest.Must(t, c.try(t, "k"))
		heard("nothing has happened")

		slots.servers[first].OnCommand(func(redistest.Command) redistest.Fault { return redistest.DropBefore })
		slots.servers[first].Cut()
		_ = c.try(t, "k")
		heard("a server is down")
		slots.moveTo(c, second, second)
		heard("its slots are another's", "k", "{k}2", "other")
		slots.servers[first].OnCommand(nil)
	})
}

// Callers of a frozen master wait. Those of the other masters do not.
func TestAFrozenMasterDelaysNobodyElse(t *testing.T) {
	onMovingSlots(t, func(t *testing.T, slots *movingSlots, c *cluster) {
		slots.moveTo(c, first, second)
		const low, high = "b", "a" // in slots 3300 and 15495
		for _, key := range []string{low, high} {
			redistest.Must(t, c.try(t, key))
		}
		slots.servers[first].OnCommand(func(redistest.Command) redistest.Fault { return redistest.Silence })
		var stuck sync.WaitGroup
		answered := new(atomic.Int64)
		for range 12 {
			stuck.Go(func() {
				for c.try(t, low) != nil {
				}
				answered.Add(1)
			})
		}
		for range 100 {
			time.Sleep(50 * time.Millisecond)
			begun := time.Now()
			if err := c.try(t, high); err != nil || time.Since(begun) != 0 {
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
	}, noFeeds(), nil)
	defer c.Close()
	c.nodeClient(&redis.Options{Addr: first, NodeAddress: first, Username: "default"}).Close()
	for _, addr := range []string{first, second} { // a MOVED leads to the second
		n := c.At(addr)
		if got := c.optionsFor(addr).options; got.Username != "of "+addr || got.Addr != addr {
			t.Errorf("%s is reached as %q at %s", addr, got.Username, got.Addr)
		}
		if c.At(addr) != n || asked[addr] != 1 {
			t.Errorf("NewClient was called %d times for %s", asked[addr], addr)
		}
	}
	o := c.At("10.0.0.3:6379").Send(t.Context(), server.Sending{Call: callOf("k"), Manner: server.Manner{Full: true}})
	if o.Err == nil || !strings.Contains(o.Err.Error(), "NewClient panicked: by the user") {
		t.Errorf("%v does not say why", o.Err)
	}
}

func TestAServerIsNotGivenUpByHalf(t *testing.T) {
	onMovingSlots(t, func(t *testing.T, slots *movingSlots, c *cluster) {
		redistest.Must(t, c.try(t, "k"))
		time.Sleep(time.Second)
		importing := c.At(second)                      // as an ASK leads to it
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
			c := callOf("k")
			c.Replicas = 1
			importing.Send(t.Context(), server.Sending{Call: c, Manner: server.Manner{Full: true}})
		}()
		time.Sleep(100 * time.Millisecond)
		c.Sweep(time.Now())
		close(held)
		<-done
		slots.servers[second].OnCommand(nil)
		slots.moveTo(c, second, second)
		redistest.Check(t, c.try(t, "k"))
	})
}
