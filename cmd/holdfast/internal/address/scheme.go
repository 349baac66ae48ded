// The beginning of a URL: whose server it is, whether it is one of several, and whether it speaks TLS.

package address

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// topology is how many servers there are, and who finds them.
type topology int

const (
	server topology = iota
	cluster
	sentinel
	socket
)

// scheme is the beginning of a URL.
type scheme struct {
	written string // as the user wrote it
	base    string // redis, rediss, valkey or valkeys
	topology
	tls bool
}

// begin returns the scheme of a URL, and what follows it.
func begin(text string) (_ scheme, rest string, err error) {
	written, rest, found := strings.Cut(text, "://")
	if !found {
		// No part of it is printed: it may be a password.
		return scheme{}, "", errors.New("it is not a URL such as redis://localhost:6379")
	}
	s, known := schemes()[strings.ToLower(written)]
	if !known {
		return scheme{}, "", unknown(strings.ToLower(written))
	}
	s.written = written
	if several.MatchString(rest) {
		return scheme{}, "", fmt.Errorf("the URL %s://…: %w", written, errSeveral)
	}
	return s, rest, nil
}

// schemes returns what may stand at the beginning.
func schemes() map[string]scheme {
	all := map[string]scheme{"unix": {base: "redis", topology: socket}}
	for _, base := range []string{"redis", "valkey"} {
		for _, by := range []string{"+", "-"} {
			all[base+by+"socket"] = scheme{base: base, topology: socket}
			all[base+by+"unix"] = scheme{base: base, topology: socket}
			all[base+by+"tls"] = scheme{base: base + "s", tls: true}
			all[base+by+"ssl"] = scheme{base: base + "s", tls: true}
			for _, secure := range []bool{false, true} {
				name := base
				if secure {
					name += "s"
				}
				all[name] = scheme{base: name, tls: secure}
				all[name+by+"cluster"] = scheme{base: name, topology: cluster, tls: secure}
				all[name+by+"sentinel"] = scheme{base: name, topology: sentinel, tls: secure}
			}
		}
	}
	return all
}

// unknown returns what to write in place of a beginning that is none. It prints none but those it knows: another
// may be part of a password.
func unknown(written string) error {
	instead := map[string]string{
		"http": "redis://HOST:6379", "tcp": "redis://HOST:6379",
		"https": "rediss://HOST:6379", "tls": "rediss://HOST:6379", "ssl": "rediss://HOST:6379",
		"sentinel": "redis+sentinel://HOST:26379/MASTER", "sentinels": "rediss+sentinel://HOST:26379/MASTER",
		"cluster": "redis+cluster://HOST:6379", "rediss+socket": "redis+socket:///PATH", "unixs": "unix:///PATH",
	}
	if write, known := instead[written]; known {
		return fmt.Errorf("the URL %s://…: write %s", written, write)
	}
	return errors.New("a URL of Redis begins with redis://, rediss://, redis+cluster://, redis+sentinel:// or unix://")
}

// several finds a second URL behind the first.
var several = regexp.MustCompile(`[,;\s]\s*["']?[A-Za-z][A-Za-z0-9+-]*://`)

var errSeveral = errors.New("these are several URLs: write redis+cluster://A:6379,B:6379 for a cluster, " +
	"redis+sentinel://A:26379,B:26379/MASTER for Sentinels, and --quorum for independent servers")
