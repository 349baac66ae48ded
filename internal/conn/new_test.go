// A Manager is made without I/O, and not for what it cannot serve. How a server is named; connections without deadlines;
// what a call says of a WAIT that the server refused.

package conn_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

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
		mustMatch(t, runFor(time.Minute, newManager(t, rdb), newCount("key")), errs.BadArgument)
	})
}

func TestTheNameOfAServer(t *testing.T) {
	for want, rdb := range map[string]redis.UniversalClient{
		"redis.internal:6380": redis.NewClient(&redis.Options{Addr: "redis.internal:6380"}),
		"/run/redis.sock":     redis.NewClient(&redis.Options{Network: "unix", Addr: "/run/redis.sock"}),
		"a:7000":              redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"b:7000", "a:7000"}}),
		"": redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: "mymaster", SentinelAddrs: []string{"a:26379"},
		}),
	} {
		redistest.Equal(t, conn.ServerOf(rdb), want, "%q, want %q", want)
		_ = rdb.Close()
	}
	for _, rdb := range []redis.UniversalClient{nil, (*redis.Client)(nil)} {
		redistest.Equal(t, conn.ServerOf(rdb), "", "%q for a client that is nil")
	}
}

func TestWaitHasAnEndHoweverShortTheReadTimeoutIs(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var asked atomic.Value
		b.proxy.OnCommand(func(c redistest.Command) redistest.Fault {
			if c.Name == "WAIT" {
				asked.Store(strings.Join(c.Args, " "))
			}
			return redistest.Pass
		})
		mustRun(t, b.Manager, &conn.Call{Script: count, Keys: []string{"k"}, Replicas: 1})
		synctest.Wait()
		redistest.Equal(t, asked.Load(), "1 1", "WAIT %q, want 1 replica and 1 ms")
	}, func(o *redis.Options) { o.ReadTimeout = time.Millisecond })
}

// A server that does not say how many replicas have a call leaves it short of them. If it refuses to say, that
// is told. A failover during WAIT is no refusal.
func TestAWaitThatFailsIsAShortageOfReplicas(t *testing.T) {
	for fault, want := range map[redistest.Fault]error{
		redistest.ReplyError("NOPERM User u has no permissions to run the 'wait' command"):                                   errs.Denied,
		redistest.ReplyError("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"): errs.NotReplicated,
		redistest.ReplyNumber(0): errs.NotReplicated,
		redistest.ReplyNumber(1): nil,
	} {
		inBubble(t, func(t *testing.T, b *bubble) {
			b.proxy.OnCommand(onCommands(fault, "WAIT"))
			c := &conn.Call{Script: count, Keys: []string{"k"}, Replicas: 1}
			mustRun(t, b.Manager, c)
			redistest.Equal(t, c.Short(), want != nil, "short of replicas: %v, want %v", want)
			if want != nil {
				mustMatch(t, c.Shortage(), want)
			}
		})
	}
}

// undated is a connection through an SSH tunnel, as golang.org/x/crypto/ssh makes it.
type undated struct{ net.Conn }

var errUndated = errors.New("ssh: tcpChan: deadline not supported")

func (undated) SetDeadline(time.Time) error      { return errUndated }
func (undated) SetReadDeadline(time.Time) error  { return errUndated }
func (undated) SetWriteDeadline(time.Time) error { return errUndated }

func TestAConnectionThatTakesNoDeadlines(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.warm(t)
		held := make(chan struct{})
		defer close(held)
		b.proxy.OnCommand(func(redistest.Command) redistest.Fault { return redistest.HoldReply(held) })
		takes(t, 10*time.Second, func() { mustMatch(t, runFor(10*time.Second, b.Manager, newCount("k")), errs.Unavailable) })
		b.proxy.OnCommand(nil)
		mustRun(t, b.Manager, newCount("k")) // on a new connection

		sub, err := b.Dial(nodeOf(t, b.Manager, "k"))
		redistest.Must(t, err)
		defer sub.Close()
		heard := sub.Subscribe(t.Context(), "channel")
		defer heard.Close()
		redistest.Must(t, redistest.Err(heard.Receive(t.Context())))
		b.server.Publish("channel", "message")
		if message, err := heard.ReceiveMessage(t.Context()); err != nil || message.Payload != "message" {
			t.Errorf("%v, %v", message, err)
		}
	}, func(o *redis.Options) {
		o.ReadTimeout, o.WriteTimeout = -2, -2
		dialBy(func(_ context.Context, dial func() (net.Conn, error)) (net.Conn, error) {
			conn, err := dial()
			return undated{conn}, err
		})(o)
	})
}
