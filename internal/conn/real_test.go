// On a real server, a Manager takes over from the user's client TLS and IPv6.

package conn_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
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
			ctx := redistest.Within(t, 10*time.Second)
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
			redistest.Must(t, err)
			defer client.Close()
			if err := client.Ping(ctx).Err(); err != nil {
				t.Errorf("a subscription's connection: %v", err)
			}
		})
	}
}

// A call follows a slot that moves between IPv6 addresses, although Redis names IPv6 addresses
// without brackets when it redirects a client.
func TestASlotOnTheMoveBetweenIPv6AddressesIsFollowed(t *testing.T) {
	c := redistest.IPv6Cluster(t, 2, 0)
	m := newManager(t, c.Client(t))
	mustRun(t, m, newCount("{moving}other"))
	move := c.OpenSlot("{moving}")
	mustRun(t, m, newCount("{moving}key")) // reached by ASK
	if err := runBatch(t.Context(), t, m, nodeOf(t, m, "{moving}key"), counts("{moving}key"))[0]; err != nil {
		t.Errorf("a renewal: %v", err)
	}
	move.Finish()
	last := newCount("{moving}key")
	mustRun(t, m, last) // reached by MOVED
	if last.Int(2) < 3 {
		t.Errorf("%d executions, want 3 at least", last.Int(2))
	}
}

func TestAClusterWithoutSlotsSaysSo(t *testing.T) {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{redistest.Server(t, "--cluster-enabled", "yes").Addr()}})
	defer rdb.Close()
	err := runFor(2*time.Second, newManager(t, rdb), newCount("k"))
	mustMatch(t, err, context.DeadlineExceeded)
	mustMatch(t, err, errs.Unavailable)
	if text := fmt.Sprint(err); !strings.Contains(text, "last failure") || !strings.Contains(text, "CLUSTERDOWN") {
		t.Errorf("%v does not say why", err)
	}
}
