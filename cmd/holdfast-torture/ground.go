// The grounds: the network between contenders and servers, and how they connect, where it is
// not plain TCP with go-redis's defaults.

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// ground is one ground. Its fields go together.
type ground struct {
	Says string

	TLS     bool
	IPv6    bool
	Rotates bool          // each connection has other credentials than the one before
	Lag     time.Duration // one way
	Jitter  time.Duration
	Crowd   int    // additional lanes in the crowd of each process
	Foreign int    // number of keys of strangers
	Client  string // the go-redis client, if it is not the usual one of the topology

	Authority string // the file of the authority's certificate, set when the run begins
}

var grounds = map[string]ground{
	"plain":    {Says: "TCP on 127.0.0.1, go-redis's defaults"},
	"tls":      {Says: "TLS, and credentials that are others for each connection", TLS: true, Rotates: true},
	"lag":      {Says: "30 ms there and back, and up to 10 ms more", Lag: 15 * time.Millisecond, Jitter: 5 * time.Millisecond},
	"ipv6":     {Says: "IPv6", IPv6: true},
	"callers":  {Says: "1 000 callers more for one lock in each process", Crowd: 1000},
	"foreign":  {Says: "beside a million keys of strangers", Foreign: 1_000_000},
	"routing":  {Says: "by a cluster client that would rather ask replicas", Client: routingCluster},
	"failover": {Says: "by NewFailoverClusterClient", Client: failoverCluster},
}

// go-redis clients that only one topology has.
const (
	routingCluster  = "routing cluster"
	failoverCluster = "failover cluster"
)

// groundsOf returns the names of the grounds that there are on a topology.
func groundsOf(topology string) []string {
	var all []string
	for name, g := range grounds {
		if g.Client == "" || g.Client == routingCluster && topology == "cluster" || g.Client == failoverCluster && topology == "sentinel" {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// prepare returns the ways by which contenders reach the proxies.
func (g *ground) prepare(t testing.TB) (ways []redistest.Way) {
	if g.TLS {
		a := redistest.NewAuthority(t)
		g.Authority = a.Path("ca.crt")
		ways = append(ways, redistest.OverTLS(&tls.Config{Certificates: []tls.Certificate{a.Issue("proxy")}}))
	}
	if g.IPv6 {
		ways = append(ways, redistest.OnIPv6())
	}
	if g.Lag > 0 {
		ways = append(ways, redistest.Lagging(g.Lag, g.Jitter))
	}
	return ways
}

// leaves returns the goroutines that go-redis itself leaves behind when its client is closed:
// the client of NewFailoverClusterClient does not end its subscription to the Sentinels.
func (g ground) leaves() []goleak.Option {
	if g.Client != failoverCluster {
		return nil
	}
	var all []goleak.Option
	for _, function := range []string{"(*sentinelFailover).listen", "(*channel).initHealthCheck.func1", "(*channel).initMsgChan.func1"} {
		all = append(all, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9."+function))
	}
	return all
}

// strangers is the prefix of the keys of strangers.
const strangers = "stranger:"

// populate fills the servers with keys of strangers.
func (g *ground) populate(t testing.TB, servers []redis.UniversalClient) {
	const batch = 10_000
	for _, rdb := range servers {
		for from := 0; from < g.Foreign/len(servers); from += batch {
			_, err := rdb.Pipelined(context.Background(), func(p redis.Pipeliner) error {
				for n := range batch {
					p.Set(context.Background(), fmt.Sprintf("%s%d", strangers, from+n), "x", 0)
				}
				return nil
			})
			if err != nil {
				t.Fatalf("fill a server: %v", err)
			}
		}
	}
}
