// From the parts of a URL to the options of go-redis, and why they make none.

package address

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// address returns what the parts say.
func (p *parts) address() (*Address, error) {
	if p.fragment != "" && p.topology != sentinel {
		return nil, errors.New("what stands after a # means nothing; in a password write %23 for it")
	}
	if len(p.hosts) > 1 && p.topology == server {
		return nil, errSeveral
	}
	verify, err := p.verifies()
	if err != nil {
		return nil, err
	}
	read := map[topology]func() (*Address, error){
		server: p.server, cluster: p.ofCluster, sentinel: p.behindSentinels, socket: p.bySocket,
	}[p.topology]
	a, err := read()
	if err != nil {
		return nil, err
	}
	a.scheme = p.scheme
	if c := a.TLS(); c != nil {
		c.InsecureSkipVerify = !verify
		if len(p.hosts) > 1 {
			c.ServerName = "" // each server by the host that it is dialed at
		}
	}
	return a, nil
}

// verifies reads the option skip_verify.
func (p *parts) verifies() (bool, error) {
	text, given := p.query.Get("skip_verify"), p.query.Has("skip_verify")
	p.query.Del("skip_verify")
	if !given || text == "" {
		return true, nil
	}
	skip, err := strconv.ParseBool(text)
	switch {
	case err != nil:
		return false, errors.New("skip_verify is true or false")
	case skip && !p.tls:
		return false, fmt.Errorf("skip_verify needs TLS: write %s", strings.Replace(p.written, p.base, p.base+"s", 1)+"://")
	}
	return !skip, nil
}

func (p *parts) server() (*Address, error) {
	number := strings.Trim(p.path, "/")
	if number != "" {
		if _, err := database(number); err != nil {
			return nil, err
		}
	}
	o, err := parsed(p, url.URL{Host: p.hosts[0].String(), User: p.user, Path: "/" + number}, redis.ParseURL)
	if err != nil {
		return nil, err
	}
	a := &Address{Server: o, place: p.place()}
	if o.DB != 0 {
		a.place += "/" + strconv.Itoa(o.DB)
	}
	return a, nil
}

func (p *parts) bySocket() (*Address, error) {
	if strings.Trim(p.path, "/") == "" {
		return nil, errors.New("the path of the socket is missing: unix:///run/redis.sock")
	}
	p.rename("virtual_host", "db")
	o, err := parsed(p, url.URL{Scheme: "unix", User: p.user, Path: p.path}, redis.ParseURL)
	if err != nil {
		return nil, err
	}
	return &Address{Server: o, place: p.path}, nil
}

func (p *parts) ofCluster() (*Address, error) {
	if strings.Trim(p.path, "/") != "" && strings.Trim(p.path, "/") != "0" {
		return nil, errors.New("a cluster has no databases but 0: write nothing after the hosts")
	}
	o, err := parsed(p, url.URL{Host: p.hosts[0].String(), User: p.user}, redis.ParseClusterURL)
	if err != nil {
		return nil, err
	}
	o.Addrs = p.addresses()
	return &Address{Cluster: o, place: p.place()}, nil
}

// rename takes an option under another name.
func (p *parts) rename(from, to string) {
	if values, given := p.query[from]; given && !p.query.Has(to) {
		p.query[to] = values
		p.query.Del(from)
	}
}

// database reads the number of a database.
func database(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, errors.New("after the hosts stands the number of a database, as in redis://localhost:6379/0")
	}
	return n, nil
}

// parsed lets go-redis read the URL. Its errors quote the URL: if it fails, each option is read alone to say which it
// is.
func parsed[O any](p *parts, u url.URL, read func(string) (*O, error)) (*O, error) {
	if u.Scheme == "" {
		if u.Scheme = "redis"; p.tls {
			u.Scheme = "rediss"
		}
	}
	with := func(query url.Values) (*O, error) {
		u.RawQuery = query.Encode()
		return read(u.String())
	}
	names := make([]string, 0, len(p.query))
	for name := range p.query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if _, err := with(url.Values{name: {""}}); err != nil || useless(p.topology, name) {
			return nil, instead(p, name)
		}
		if _, err := with(url.Values{name: p.query[name]}); err != nil {
			return nil, fmt.Errorf("the value of the option %s cannot be read", name)
		}
	}
	if db := p.query.Get("db"); db != "" {
		if _, err := database(db); err != nil {
			return nil, errors.New("the option db is the number of a database")
		}
	}
	o, err := with(p.query)
	if err != nil {
		return nil, errUnescaped
	}
	return o, nil
}

// useless reports whether an option leads away from the master, which alone grants locks. For Sentinels go-redis
// panics at two of them.
func useless(t topology, name string) bool {
	return t == sentinel && slices.Contains([]string{
		"replica_only", "use_disconnected_replicas", "route_by_latency", "route_by_latency_tolerance", "route_randomly",
	}, name)
}

// instead returns what to write in place of an option that there is not. It prints none but those it knows: another
// may be part of a password with a ? or a & in it.
func instead(p *parts, name string) error {
	write := ""
	switch name {
	case "ssl", "tls", "sslmode", "ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "cacert", "cert", "key":
		write = "TLS is rediss:// or a scheme that begins so, and its files are --ca, --cert and --key"
	case "username", "user", "password", "auth":
		write = "a user and a password stand before the host: redis://USER:PASSWORD@HOST:6379"
	case "master_name", "master", "mastername", "masterName", "master_set", "sentinel_master", "sentinelMasterId":
		write = "Sentinels are redis+sentinel://HOST:26379/MASTER"
	case "addr":
		write = "several servers are redis+cluster://A:6379,B:6379, or redis+sentinel://A:26379,B:26379/MASTER"
	case "timeout", "connect_timeout", "connectTimeout", "socket_timeout":
		write = "there are --timeout, and the options dial_timeout, read_timeout and write_timeout"
	case "database":
		write = "the option is db"
	}
	switch {
	case write != "":
		return fmt.Errorf("%s is no option here: %s", name, write)
	case useless(p.topology, name):
		return fmt.Errorf("%s is no option here: locks are at the master", name)
	}
	return errors.New("an option after the ? is not known; in a password, ? & and = are written %3F %26 and %3D")
}
