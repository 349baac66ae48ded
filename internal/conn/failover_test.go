// The Sentinels are asked for the master through the dialer of the user's client.

package conn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// newMaster returns the address of a listener, and how many connections were made to it.
func newMaster(t *testing.T) (addr string, connected *atomic.Int64) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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

// asks has the Sentinels asked n times, and returns how often that made the Manager drop its
// connections.
func (f *failover) asks(n int) int64 {
	before := f.only.gate.era.Load()
	for range n {
		f.mu.Lock()
		f.question = make(chan struct{})
		f.mu.Unlock()
		f.follow()
	}
	return f.only.gate.era.Load() - before
}

// behindSentinels returns a failover whose Sentinels name the address that named points to.
func behindSentinels(t *testing.T, dial dialer, named *string) *failover {
	f := newFailover(wireOptions(redis.Options{
		Addr: sentinelAddr, Network: "tcp",
		Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dial(ctx, network, *named)
		},
	}, &feeds{}), nil)
	t.Cleanup(f.close)
	return f
}

// The Sentinels are asked without a connection to the master, unless the user's dialer makes one whatever the
// network. When they name another master, connections are dropped once. If there was a dial before the first
// question, that dial has told which master was the first.
func TestTheSentinelsAreAskedWithoutAConnectionToTheMaster(t *testing.T) {
	tcp := new(net.Dialer).DialContext
	for name, tc := range map[string]struct {
		dial     dialer
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
					conn, err := f.only.options.Dialer(t.Context(), "tcp", sentinelAddr)
					if err != nil {
						t.Fatal(err)
					}
					defer func() { _ = conn.Close() }()
					named = b
				}
				want := dials
				if !tc.tells {
					want = 0
				}
				if n := f.asks(5); n != want {
					t.Errorf("connections were dropped %d times, want %d", n, want)
				}
				named = map[string]string{a: b, b: a}[named]
				if n := f.asks(5); n != 1 {
					t.Errorf("connections were dropped %d times for a new master, want once", n)
				}
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
		if _, err := f.masters(t.Context()); err != nil { // this asks the Sentinels
			t.Fatal(err)
		}
		f.asking.Wait()
		if got, err := f.masters(t.Context()); err != nil || !slices.Equal(got, []string{named}) {
			t.Errorf("masters %q, %v; want %s", got, err, named)
		}
	}
}

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
		conn, err := f.only.options.Dialer(t.Context(), "tcp", sentinelAddr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
	}
	if n := f.asks(4); n != 0 {
		t.Errorf("connections were dropped %d times", n)
	}
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
	topology, err := newTopology(rdb, &feeds{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer topology.close()
	f, ok := topology.(*failover)
	if !ok {
		t.Fatalf("served as a %T", topology)
	}
	if o := f.only.options; o.ClientName != "named" || o.Password != "secret" || made == 0 {
		t.Errorf("the options of a node are %q and %q; %d clients were made", o.ClientName, o.Password, made)
	}
	if n := connected.Load(); n != 0 {
		t.Errorf("%d connections before the first call", n)
	}
	if master, err := f.where(t.Context()); err != nil || master != a {
		t.Errorf("leads to %s: %v", master, err)
	}
	if sharded, _ := f.sharded(t.Context()); sharded {
		t.Error("takes sharded channels")
	}
}

func TestClusterSlotsOfSeveralMastersAreRefused(t *testing.T) {
	redistest.Bubble(t, func(t *testing.T) {
		two := []redis.ClusterSlot{
			{End: 8191, Nodes: []redis.ClusterNode{{Addr: "127.0.0.1:1"}}},
			{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: "127.0.0.1:2"}}},
		}
		rdb := redis.NewClusterClient(&redis.ClusterOptions{
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return two, nil },
			Dialer:       func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED },
		})
		defer func() { _ = rdb.Close() }()
		m, err := New(rdb, slog.New(slog.DiscardHandler), Events{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		call := &Call{Script: NewScript("once", "return {1, 0}"), Keys: []string{"key"}}
		if err := m.Run(ctx, call); !errors.Is(err, errs.BadArgument) {
			t.Errorf("Run: %v, want an error that matches ErrBadArgument", err)
		}
	})
}
