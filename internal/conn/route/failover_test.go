// The Sentinels are asked for the master through the dialer of the user's client.

package route

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/internal/conn/dial"
	"github.com/holdfast-go/holdfast/internal/conn/server"
	"github.com/holdfast-go/holdfast/internal/test/doctest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// newMaster returns the address of a listener, and how many connections were made to it.
func newMaster(t *testing.T) (addr string, connected *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	redistest.Must(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	connected = new(atomic.Int64)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			connected.Add(1)
			defer func() { _ = conn.Close() }()
		}
	}()
	return ln.Addr().String(), connected
}

// asks has the Sentinels asked n times, and returns how often they named another master than before: each time the
// connections are dropped.
func (f *failover) asks(n int) (dropped int64) {
	f.events.Replaced = func() { dropped++ }
	for range n {
		f.mu.Lock()
		f.question = make(chan struct{})
		f.mu.Unlock()
		f.follow()
	}
	return dropped
}

// behindSentinels returns a failover whose Sentinels name the address that named points to.
func behindSentinels(t *testing.T, dial dial.Dialer, named *string) *failover {
	f := newFailover(redis.Options{
		Addr: sentinelAddr, Network: "tcp",
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dial(ctx, network, *named)
		},
	}, noFeeds(), new(server.Events))
	t.Cleanup(f.Close)
	return f
}

// The Sentinels are asked without a connection to the master, unless the user's dialer makes one whatever the
// network. When they name another master, connections are dropped once. If there was a dial before the first
// question, that dial has told which master was the first.
func TestTheSentinelsAreAskedWithoutAConnectionToTheMaster(t *testing.T) {
	tcp := new(net.Dialer).DialContext
	for name, tc := range map[string]struct {
		dial     dial.Dialer
		connects bool
		tells    bool // a dial tells which server is the master
	}{
		"go-redis's dialer": {tcp, false, true},
		"a dialer that looks at no network": {func(ctx context.Context, _, addr string) (net.Conn, error) {
			return tcp(ctx, "tcp", addr)
		}, true, true},
		"a dialer that refuses other networks": {func(ctx context.Context, network, addr string) (net.Conn, error) {
			if network != "tcp" {
				return nil, errors.New("only tcp")
			}
			return tcp(ctx, network, addr)
		}, true, false},
	} {
		for _, dials := range []int64{0, 1} {
			t.Run(fmt.Sprint(name, dials), func(t *testing.T) {
				a, toA := newMaster(t)
				b, toB := newMaster(t)
				named := a
				f := behindSentinels(t, tc.dial, &named)
				if dials == 1 {
					conn, err := f.dial(t.Context(), "tcp", sentinelAddr)
					redistest.Must(t, err)
					defer func() { _ = conn.Close() }()
					named = b
				}
				want := dials
				if !tc.tells {
					want = 0
				}
				redistest.Equal(t, f.asks(5), want, "connections were dropped %d times, want %d", want)
				named = map[string]string{a: b, b: a}[named]
				redistest.Equal(t, f.asks(5), 1, "connections were dropped %d times for a new master, want once")
				if n := toA.Load() + toB.Load(); !tc.connects && n > dials {
					t.Errorf("%d connections were made to ask", n-dials)
				}
			})
		}
	}
}

// The address of the master is the one that the Sentinels named last.
func TestTheMasterBehindSentinelsHasItsAddress(t *testing.T) {
	a, _ := newMaster(t)
	b, _ := newMaster(t)
	var named string
	f := behindSentinels(t, new(net.Dialer).DialContext, &named)
	for _, named = range []string{a, b} {
		f.mu.Lock()
		f.asked, f.answered = time.Time{}, time.Time{}
		f.mu.Unlock()
		redistest.Must(t, redistest.Err(f.Masters(t.Context()))) // this asks the Sentinels
		f.asking.Wait()
		if got, err := f.Masters(t.Context()); err != nil || !slices.Equal(got, []string{named}) {
			t.Errorf("masters %q, %v; want %s", got, err, named)
		}
	}
}

// A dialer of the user's may return connections that do not know where they lead.
func TestAMasterWithoutAnAddressIsNoOther(t *testing.T) {
	a, _ := newMaster(t)
	knows := true
	f := behindSentinels(t, func(ctx context.Context, _, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil || knows {
			return conn, err
		}
		return nameless{conn}, nil
	}, &a)
	for _, knows = range []bool{true, false, true} {
		redistest.Equal(t, f.asks(1), 0, "connections were dropped %d times")
	}
}

type nameless struct{ net.Conn }

func (nameless) RemoteAddr() net.Addr { return nil }

// The master's name has two addresses, but the Sentinels name one master all the while: no
// connection is dropped.
func TestTwoAddressesOfOneMasterDropNoConnections(t *testing.T) {
	a, _ := newMaster(t)
	b, _ := newMaster(t)
	addrs, named := []string{a, b}, "master.example:6379"
	f := behindSentinels(t, func(ctx context.Context, network, addr string) (net.Conn, error) {
		if network != nowhere {
			addr, addrs[0], addrs[1] = addrs[0], addrs[1], addrs[0]
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}, &named)
	for range 4 {
		conn, err := f.dial(t.Context(), "tcp", sentinelAddr)
		redistest.Must(t, err)
		defer func() { _ = conn.Close() }()
	}
	redistest.Equal(t, f.asks(4), 0, "connections were dropped %d times")
}

// A slow resolver must not hold up New: go-redis looks up the name of each client that it makes with
// notifications of maintenance.
func TestClusterSlotsOfOneMasterLeadToIt(t *testing.T) {
	a, connected := newMaster(t)
	one := []redis.ClusterSlot{{End: 16383, Nodes: []redis.ClusterNode{{Addr: a}, {Addr: "127.0.0.1:1"}}}}
	made := 0
	rdb := redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return one, nil },
		ClientName:   "named", Password: "secret", RouteByLatency: true, ReadOnly: true,
		NewClient: func(o *redis.Options) *redis.Client {
			made++
			if c := o.MaintNotificationsConfig; c == nil || c.Mode != maintnotifications.ModeDisabled {
				t.Errorf("a client for %s with notifications %+v", o.Addr, c)
			}
			return redis.NewClient(o)
		},
	})
	defer func() { _ = rdb.Close() }()
	topology, err := newTopology(rdb, noFeeds(), nil)
	redistest.Must(t, err)
	defer topology.Close()
	f, ok := topology.(*failover)
	if !ok {
		t.Fatalf("served as a %T", topology)
	}
	client := f.only.Client()
	defer func() { _ = client.Close() }()
	if o := client.Options(); o.ClientName != "named" || o.Password != "secret" || made == 0 {
		t.Errorf("the options of a node are %q and %q; %d clients were made", o.ClientName, o.Password, made)
	}
	redistest.Equal(t, connected.Load(), 0, "%d connections before the first call")
	if master, err := f.where(t.Context()); err != nil || master != a {
		t.Errorf("leads to %s: %v", master, err)
	}
	if sharded, _ := f.Sharded(t.Context()); sharded {
		t.Error("takes sharded channels")
	}
}

func TestMain(m *testing.M) { redistest.Main(m) }

func TestTheDocumentsSayWhenAServerIsGivenUp(t *testing.T) {
	doctest.Says(t, retireAfter, "docs/connecting.md", "lost its slots is closed after {}")
}
