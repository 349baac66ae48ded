// On a real server, a Manager takes over from the user's client TLS, credentials in every form, and
// IPv6.

package conn_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestOptionsTLSWithAnAuthorityOfOnesOwnOnBothSides(t *testing.T) {
	redistest.RealTime(t)
	a := redistest.NewAuthority(t)
	mine := a.Issue("client")
	_, addr := redistest.TLSServer(t, a, "--tls-auth-clients", "yes")
	for name, tc := range map[string]struct {
		config *tls.Config
		want   error
	}{
		"both trust each other":    {&tls.Config{RootCAs: a.Trust, Certificates: []tls.Certificate{mine}}, nil},
		"the server is a stranger": {&tls.Config{Certificates: []tls.Certificate{mine}}, errs.Unavailable},
		"the client is a stranger": {&tls.Config{RootCAs: a.Trust}, errs.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			rdb := redis.NewClient(&redis.Options{Addr: addr, TLSConfig: tc.config})
			defer rdb.Close()
			m := newManager(t, rdb)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			err := m.Run(ctx, newCount("k"))
			if tc.want == nil && err != nil {
				t.Fatal(err)
			}
			if tc.want != nil {
				mustMatch(t, err, tc.want)
				// The server's refusal may get lost when the server closes the connection.
				if ctx.Err() != nil && !strings.Contains(name, "client") {
					t.Error("what no retry mends was retried until the context ended")
				}
				return
			}
			client, err := m.Dial(addr)
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if err := client.Ping(ctx).Err(); err != nil {
				t.Errorf("a subscription's connection: %v", err)
			}
		})
	}
}

func TestOptionsCredentialsInEveryForm(t *testing.T) {
	server := redistest.Server(t)
	admin := server.Admin()
	do := func(args ...any) {
		t.Helper()
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	do("ACL", "SETUSER", "app", "on", ">first", "~*", "&*", "+@all")
	do("ACL", "SETUSER", "default", "off")
	defer do("ACL", "SETUSER", "default", "on")
	streamed := &stream{username: "app", password: "first"}
	for name, set := range map[string]func(o *redis.Options){
		"static":   func(o *redis.Options) { o.Username, o.Password = "app", "first" },
		"provider": func(o *redis.Options) { o.CredentialsProvider = func() (string, string) { return "app", "first" } },
		"context": func(o *redis.Options) {
			o.CredentialsProviderContext = func(context.Context) (string, string, error) { return "app", "first", nil }
		},
		"stream": func(o *redis.Options) { o.StreamingCredentialsProvider = streamed },
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, server.Client(t, set))
			mustRun(t, m, newCount("k"))
			if err := runBatch(t.Context(), t, m, nodeOf(t, m, "k"), []*conn.Call{newCount("k")})[0]; err != nil {
				t.Error(err)
			}
			client, err := m.Dial(nodeOf(t, m, "k"))
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if who, err := client.Do(t.Context(), "ACL", "WHOAMI").Text(); who != "app" {
				t.Errorf("a subscription's connection is of %q, %v", who, err)
			}
		})
	}
	t.Run("a rotation", func(t *testing.T) {
		m := newManager(t, server.Client(t, func(o *redis.Options) { o.StreamingCredentialsProvider = streamed }))
		mustRun(t, m, newCount("k"))
		do("ACL", "SETUSER", "app", "<first", ">second")
		streamed.rotate("second")
		mustRun(t, m, newCount("k"))
		do("CLIENT", "KILL", "USER", "app")
		mustRun(t, m, newCount("k"))
		m.Close()
		if streamed.subscribed != streamed.unsubscribed {
			t.Errorf("%d subscriptions, %d ended", streamed.subscribed, streamed.unsubscribed)
		}
	})
}

// A call follows a slot that moves between IPv6 addresses, although Redis names IPv6 addresses
// without brackets when it redirects a client.
func TestASlotOnTheMoveBetweenIPv6AddressesIsFollowed(t *testing.T) {
	redistest.RealTime(t)
	if listener, err := net.Listen("tcp", "[::1]:0"); err != nil {
		redistest.Missing(t, "no IPv6 on the loopback interface")
	} else {
		listener.Close()
	}
	var admins [2]*redis.Client
	var addrs, ids [2]string
	for i := range admins {
		s := redistest.Server(t, "--bind", "127.0.0.1", "::1", "--cluster-enabled", "yes", "--cluster-announce-ip", "::1")
		admins[i] = s.Admin()
		_, port, _ := net.SplitHostPort(s.Addr())
		addrs[i] = net.JoinHostPort("::1", port)
	}
	do := func(i int, args ...any) string {
		t.Helper()
		text, err := admins[i].Do(t.Context(), args...).Text()
		if err != nil {
			t.Fatal(args, err)
		}
		return text
	}
	do(0, "CLUSTER", "ADDSLOTSRANGE", 0, 8191)
	do(1, "CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
	host, port, _ := net.SplitHostPort(addrs[1])
	do(0, "CLUSTER", "MEET", host, port)
	for i := range ids {
		ids[i] = do(i, "CLUSTER", "MYID")
		redistest.Eventually(t, 30*time.Second, "the cluster is whole", func() error {
			if info := do(i, "CLUSTER", "INFO"); !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_known_nodes:2") {
				return fmt.Errorf("%s", info)
			}
			return nil
		})
	}
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs[:]})
	defer rdb.Close()
	m := newManager(t, rdb)
	const key = "bar" // in slot 5061
	mustRun(t, m, newCount("{bar}other"))
	do(1, "CLUSTER", "SETSLOT", keys.Slot(key), "IMPORTING", ids[0])
	do(0, "CLUSTER", "SETSLOT", keys.Slot(key), "MIGRATING", ids[1])
	call := newCount(key)
	mustRun(t, m, call) // reached by ASK
	node := nodeOf(t, m, key)
	if err := runBatch(t.Context(), t, m, node, []*conn.Call{newCount(key)})[0]; err != nil {
		t.Errorf("a renewal: %v", err)
	}
	admins[0].Del(t.Context(), "{bar}other")
	for i := range ids {
		do(1-i, "CLUSTER", "SETSLOT", keys.Slot(key), "NODE", ids[1])
	}
	last := newCount(key)
	mustRun(t, m, last) // reached by MOVED
	if last.Int(2) != 3 {
		t.Errorf("%d executions, want 3", last.Int(2))
	}
}

func TestAClusterWithoutSlotsSaysSo(t *testing.T) {
	server := redistest.Server(t, "--cluster-enabled", "yes")
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}})
	defer rdb.Close()
	m := newManager(t, rdb)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	err := m.Run(ctx, newCount("k"))
	mustMatch(t, err, context.DeadlineExceeded)
	mustMatch(t, err, errs.Unavailable)
	if err == nil || !strings.Contains(err.Error(), "last failure") || !strings.Contains(err.Error(), "CLUSTERDOWN") {
		t.Errorf("%v does not say why", err)
	}
}
