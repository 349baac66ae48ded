// What follows the scheme of a URL: a user, hosts, a path, options and what stands after a #.

package address

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// parts are those of a URL.
type parts struct {
	scheme
	user     *url.Userinfo
	hosts    []host
	path     string
	query    url.Values
	fragment string
}

type host struct{ name, port string }

func (h host) String() string { return net.JoinHostPort(h.name, h.port) }

// errUnescaped is why a URL cannot be read, most likely. The errors of net/url have parts of the URL.
var errUnescaped = errors.New("it cannot be read; in a password, / ? # @ % and a space are written %2F %3F %23 %40 %25 and %20")

// oneMore finds the end of a host before a second user.
var oneMore = regexp.MustCompile(`@[^,]*,`)

// split takes a URL apart, without its scheme.
func split(s scheme, rest string) (*parts, error) {
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	// What stands before an @, such as a password, would be read as a path or as options, as a character in it ends
	// the hosts. A socket has a path, and mostly no host.
	if s.topology != socket && !strings.Contains(authority, "@") && strings.Contains(tail, "@") {
		return nil, errUnescaped
	}
	p := &parts{scheme: s}
	at := strings.LastIndex(authority, "@")
	if at >= 0 {
		if (s.topology == cluster || s.topology == sentinel) && oneMore.MatchString(authority[:at]) {
			return nil, errors.New("write the user and the password once, before the first host; in a password write @ as %40")
		}
		u, err := url.Parse("redis://" + authority[:at+1])
		if err != nil {
			return nil, errUnescaped
		}
		p.user = u.User
	}
	u, err := url.Parse("redis://host" + tail)
	if err != nil {
		return nil, errUnescaped
	}
	if p.query, err = url.ParseQuery(u.RawQuery); err != nil {
		return nil, errUnescaped
	}
	p.path, p.fragment = u.Path, u.Fragment
	return p, p.readHosts(authority[at+1:])
}

// readHosts reads the hosts, and further ones from the option addr.
func (p *parts) readHosts(list string) error {
	if p.topology == socket {
		if list != "" && list != "localhost" {
			return errors.New("a socket has no host: write three slashes, as in unix:///run/redis.sock")
		}
		return nil
	}
	texts := strings.Split(list, ",")
	if p.topology == cluster || p.topology == sentinel {
		for _, more := range p.query["addr"] {
			texts = append(texts, strings.Split(more, ",")...)
		}
		p.query.Del("addr")
	}
	for n, text := range texts {
		h, err := p.readHost(strings.TrimSpace(text), n == 0 && len(texts) == 1)
		if err != nil {
			return err
		}
		p.hosts = append(p.hosts, h)
	}
	return nil
}

func (p *parts) readHost(text string, only bool) (host, error) {
	if text == "" && !only {
		return host{}, errors.New("a host is missing before or after a comma")
	}
	if strings.Count(text, ":") > 1 && !strings.Contains(text, "]") {
		return host{}, errors.New("an IPv6 address is written in brackets, as in redis://[::1]:6379")
	}
	u, err := url.Parse("redis://" + text)
	if err != nil || u.User != nil || u.Path+u.RawQuery+u.Fragment != "" {
		return host{}, errUnescaped
	}
	h := host{u.Hostname(), u.Port()}
	if h.name == "" {
		h.name = "localhost"
	}
	if h.port == "" {
		h.port = "6379"
		if p.topology == sentinel {
			h.port = "26379"
		}
	}
	if port, err := strconv.Atoi(h.port); err != nil || port < 1 || port > 65535 {
		return host{}, errors.New("a port is a number from 1 to 65535")
	}
	return h, nil
}

// addresses returns the hosts with their ports.
func (p *parts) addresses() []string {
	var all []string
	for _, h := range p.hosts {
		all = append(all, h.String())
	}
	return all
}

// place returns what may be printed after the scheme while the rest is not known to be right.
func (p *parts) place() string {
	if p.topology == socket {
		return p.path
	}
	return strings.Join(p.addresses(), ",")
}
