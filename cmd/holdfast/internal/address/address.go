// Package address reads the URLs of Redis, in the forms that people write, into the options of go-redis.
//
// No error and no Address prints any part of a user or a password, nor what may be one that was misread.
package address

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Address is where Redis is. Of Server, Cluster and Sentinel one is not nil.
type Address struct {
	Server   *redis.Options
	Cluster  *redis.ClusterOptions
	Sentinel *redis.FailoverOptions

	scheme scheme
	place  string // what is printed after the scheme
}

// Parse reads a URL. White space and quotes around it, as secrets and environment files have, are left out.
func Parse(text string) (*Address, error) {
	scheme, rest, err := begin(bare(text))
	if err != nil {
		return nil, err
	}
	p, err := split(scheme, rest)
	if err != nil {
		return nil, fmt.Errorf("the URL %s://…: %w", scheme.written, err)
	}
	a, err := p.address()
	if err != nil {
		return nil, fmt.Errorf("the URL %s://%s: %w", scheme.written, p.place(), err)
	}
	return a, nil
}

// bare returns a URL without what stands around it.
func bare(text string) string {
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	for _, quote := range []string{`"`, "'"} {
		if inner, found := strings.CutPrefix(text, quote); found && strings.HasSuffix(inner, quote) {
			return strings.TrimSpace(strings.TrimSuffix(inner, quote))
		}
	}
	return text
}

// String returns the URL as it was written, without users, passwords and options.
func (a *Address) String() string { return a.scheme.written + "://" + a.place }

// Like returns the URL of the same servers with another end of the scheme: +cluster, +sentinel, or none, which is
// for the first of them alone.
func (a *Address) Like(topology string) string {
	hosts, _, _ := strings.Cut(a.place, "/")
	if topology == "" {
		hosts, _, _ = strings.Cut(hosts, ",")
	}
	return a.scheme.base + topology + "://" + hosts
}

// TLS returns the configuration of TLS, which may be changed before the first Client, or nil without TLS.
func (a *Address) TLS() *tls.Config {
	switch {
	case a.Cluster != nil:
		return a.Cluster.TLSConfig
	case a.Sentinel != nil:
		return a.Sentinel.TLSConfig
	}
	return a.Server.TLSConfig
}

// Password returns where Redis's own password is kept.
func (a *Address) Password() *string {
	switch {
	case a.Cluster != nil:
		return &a.Cluster.Password
	case a.Sentinel != nil:
		return &a.Sentinel.Password
	}
	return &a.Server.Password
}

// Client returns a new client, whose calls are not tried again unless the URL says so: who calls knows for how
// long to try, and wants to know why a try has failed.
func (a *Address) Client() redis.UniversalClient {
	switch {
	case a.Cluster != nil:
		o := *a.Cluster
		o.MaxRetries, o.DialerRetries = cmp.Or(o.MaxRetries, -1), cmp.Or(o.DialerRetries, 1)
		return redis.NewClusterClient(&o)
	case a.Sentinel != nil:
		o := *a.Sentinel
		o.MaxRetries, o.DialerRetries = cmp.Or(o.MaxRetries, -1), cmp.Or(o.DialerRetries, 1)
		return redis.NewFailoverClient(&o)
	}
	o := *a.Server
	o.MaxRetries, o.DialerRetries = cmp.Or(o.MaxRetries, -1), cmp.Or(o.DialerRetries, 1)
	return redis.NewClient(&o)
}
