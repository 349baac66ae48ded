// Connecting: from a URL to a Client.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

const defaultURL = "redis://localhost:6379"

// quiet drops what go-redis logs: a command says by itself what failed.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// target returns the URL of the Redis in use.
func (a *app) target() string {
	return cmp.Or(a.url, os.Getenv("HOLDFAST_URL"), defaultURL)
}

// open returns a Client of the Redis in use, which has answered, and a function that closes it.
func (a *app) open(ctx context.Context, options ...holdfast.Option) (*holdfast.Client, func(), error) {
	client, shut, err := a.openURL(ctx, a.target(), options...)
	if err != nil && client != nil {
		shut()
	}
	return client, shut, err
}

// openURL returns a Client of that Redis, and a function that closes it. If there is a Client and an error,
// Redis has not answered.
func (a *app) openURL(ctx context.Context, target string, options ...holdfast.Option) (*holdfast.Client, func(), error) {
	redis.SetLogger(quiet{})
	rdb, err := dial(target)
	if err != nil {
		return nil, nil, usage(err)
	}
	options = append([]holdfast.Option{holdfast.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))}, options...)
	client := holdfast.New(rdb, options...)
	shut := func() {
		_ = client.Close()
		_ = rdb.Close()
	}
	return client, shut, a.reached(ctx, rdb, target)
}

// reached waits until Redis answers, even if the answer is an error: what that means, the library knows.
func (a *app) reached(ctx context.Context, rdb redis.UniversalClient, target string) error {
	ping, cancel := a.within(ctx)
	defer cancel()
	err := firstAnswer(ping, rdb)
	switch {
	case err == nil, errors.As(err, new(redis.Error)):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return &exit{codeUnavailable, fmt.Errorf("no answer from Redis at %s: %w", shown(target), err)}
}

// dial returns a go-redis client for a URL:
//
//	redis://user:password@host:6379/0             one server; rediss:// with TLS, unix:// by a socket
//	redis+cluster://host:6379?addr=other:6379     a cluster; rediss+cluster:// with TLS
//	redis+sentinel://host:26379?master_name=main&addr=other:26379
//	                                              a master behind Sentinels; rediss+sentinel:// with TLS
func dial(target string) (redis.UniversalClient, error) {
	scheme, rest, found := strings.Cut(target, "://")
	if !found {
		return nil, fmt.Errorf("it is not a URL such as %s", defaultURL) // it may be a password
	}
	if misread(target) {
		return nil, fmt.Errorf("the URL %s: %w", shown(target), errUnescaped)
	}
	base, topology, _ := strings.Cut(scheme, "+")
	if topology != "" {
		target = base + "://" + rest
	}
	var rdb redis.UniversalClient
	var err error
	switch topology {
	case "":
		var o *redis.Options
		if o, err = redis.ParseURL(target); err == nil {
			rdb = redis.NewClient(o)
		}
	case "cluster":
		var o *redis.ClusterOptions
		if o, err = redis.ParseClusterURL(target); err == nil {
			rdb = redis.NewClusterClient(o)
		}
	case "sentinel":
		var o *redis.FailoverOptions
		if o, err = redis.ParseFailoverURL(target); err == nil {
			rdb = redis.NewFailoverClient(o)
		}
	default:
		err = fmt.Errorf("unknown scheme %q", scheme)
	}
	if err != nil {
		if errors.As(err, new(*url.Error)) {
			err = errUnescaped // the text of that error has the URL, or parts of it, password and all
		}
		return nil, fmt.Errorf("the URL %s: %w", shown(target), err)
	}
	return rdb, nil
}

// errUnescaped is why a URL cannot be read, most likely.
var errUnescaped = errors.New("it cannot be read; in a password, / ? # @ and % are written %2F %3F %23 %40 and %25")

// misread reports whether what stands before the @ of a URL, such as a password, would be read as its path or
// query, as a character in it ends the host.
func misread(target string) bool {
	scheme, rest, _ := strings.Cut(target, "://")
	if scheme == "unix" {
		return false // it has a path, and mostly no host
	}
	end := strings.IndexAny(rest, "/?#")
	return end >= 0 && !strings.Contains(rest[:end], "@") && strings.Contains(rest[end:], "@")
}

// shown returns a URL without what may be secret: its password and its options.
func shown(target string) string {
	u, err := url.Parse(target)
	if err != nil || misread(target) {
		scheme, _, _ := strings.Cut(target, "://")
		return scheme + "://…"
	}
	u.RawQuery = ""
	return u.Redacted()
}
