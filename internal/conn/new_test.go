// A Manager is made without I/O, and not for what it cannot serve.

package conn_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestNewRefusesWhatItCannotServe(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	for name, rdb := range map[string]redis.UniversalClient{
		"nil":                  nil,
		"nil *Client":          (*redis.Client)(nil),
		"nil *ClusterClient":   (*redis.ClusterClient)(nil),
		"*Ring":                ring,
		"a type of somebody's": struct{ redis.UniversalClient }{},
	} {
		m, err := conn.New(rdb, slog.New(slog.DiscardHandler), conn.Events{})
		if m != nil || !errors.Is(err, errs.BadArgument) {
			t.Errorf("%s: %v, %v, want errs.BadArgument", name, m, err)
		}
	}
}

// New does no I/O, whatever client it is given.
func TestNewDoesNoIO(t *testing.T) {
	dial := func(context.Context, string, string) (net.Conn, error) {
		t.Error("dialled")
		return nil, net.ErrClosed
	}
	addrs := []string{"127.0.0.1:1"}
	for _, rdb := range []redis.UniversalClient{
		redis.NewClient(&redis.Options{Addr: addrs[0], Dialer: dial}),
		redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Dialer: dial}),
		redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: addrs, Dialer: dial}),
	} {
		m, err := conn.New(rdb, slog.New(slog.DiscardHandler), conn.Events{})
		if err != nil {
			t.Fatalf("%T: %v", rdb, err)
		}
		m.Close()
		rdb.Close()
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
		m, err := conn.New(rdb, slog.New(slog.DiscardHandler), conn.Events{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := m.Run(ctx, newCount("key")); !errors.Is(err, errs.BadArgument) {
			t.Errorf("Run: %v, want an error that matches ErrBadArgument", err)
		}
	})
}
