// How a contender connects: through the proxies, on its ground.

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// connect makes the go-redis clients: one, or one for each server of a quorum.
func (o orders) connect(names *resolver) ([]redis.UniversalClient, error) {
	secure, err := o.Ground.trust()
	if err != nil {
		return nil, err
	}
	r := &route{to: o.Routes, names: names, secure: secure}
	credentials := o.Ground.credentials()
	switch o.Topology {
	case "sentinel":
		options := &redis.FailoverOptions{
			MasterName: redistest.MasterName, SentinelAddrs: o.Addrs,
			Dialer: r.dial, CredentialsProviderContext: credentials,
		}
		if o.Ground.Client == failoverCluster {
			return []redis.UniversalClient{redis.NewFailoverClusterClient(options)}, nil
		}
		return []redis.UniversalClient{redis.NewFailoverClient(options)}, nil
	case "cluster":
		routing := o.Ground.Client == routingCluster
		return []redis.UniversalClient{redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: o.Addrs, Dialer: r.dial, CredentialsProviderContext: credentials,
			ReadOnly: routing, RouteByLatency: routing,
		})}, nil
	}
	var all []redis.UniversalClient
	for _, addr := range slices.Sorted(slices.Values(o.Addrs)) {
		options := &redis.Options{Addr: addr, Dialer: r.dial, CredentialsProviderContext: credentials}
		if secure != nil { // as users do: a TLSConfig, and go-redis's dialer
			options = &redis.Options{Addr: o.Routes[addr], TLSConfig: secure, CredentialsProviderContext: credentials}
		}
		all = append(all, redis.NewClient(options))
	}
	return all, nil
}

// route leads from a server's address to the proxy in front of it.
type route struct {
	to     map[string]string
	names  *resolver
	secure *tls.Config
}

func (r *route) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := r.names.lookup(addr); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	by, proxied := r.to[addr]
	if !proxied { // a Sentinel
		by = addr
	}
	dialer := &net.Dialer{Timeout: 2 * time.Second}
	if !proxied || r.secure == nil {
		return dialer.DialContext(ctx, network, by)
	}
	return (&tls.Dialer{NetDialer: dialer, Config: r.secure}).DialContext(ctx, network, by)
}

// trust returns the TLS configuration; nil if the ground has no TLS.
func (g ground) trust() (*tls.Config, error) {
	if !g.TLS {
		return nil, nil
	}
	text, err := os.ReadFile(g.Authority)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", g.Authority)
	}
	return &tls.Config{RootCAs: pool}, nil
}

// credentials returns the function from which connections get their credentials. A server that
// asks for no password accepts any. Because a password is sent, the proxies can refuse it.
func (g ground) credentials() func(context.Context) (user, password string, err error) {
	var connections atomic.Int64
	return func(context.Context) (string, string, error) {
		password := "torture"
		if g.Rotates {
			password = fmt.Sprint(connections.Add(1))
		}
		return "default", password, nil
	}
}

// resolver resolves the contender's names, unless it fails.
type resolver struct{ until atomic.Int64 }

func (r *resolver) fail(d time.Duration) { r.until.Store(stamp(time.Now().Add(d))) }

func (r *resolver) lookup(host string) error {
	if stamp(time.Now()) < r.until.Load() {
		return &net.DNSError{Err: "server misbehaving", Name: host, IsTemporary: true}
	}
	return nil
}
