// Connecting: from the flags to a Client whose Redis has answered.

package cli

import (
	"cmp"
	"context"
	"io"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/address"
)

const defaultURL = "redis://localhost:6379"

// quiet drops what go-redis logs: a command itself says what failed.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(quiet{}) }

// target returns where the Redis in use is. It is read once: a password may come from a pipe.
func (a *app) target() (*address.Address, error) {
	if a.at == nil {
		at, err := a.address(cmp.Or(a.access.url.read(), defaultURL))
		if err != nil {
			return nil, err
		}
		a.at = at
	}
	return a.at, nil
}

// address reads a URL, and adds the passwords and certificates that the flags and the environment have.
func (a *app) address(text string) (*address.Address, error) {
	at, err := address.Parse(text)
	if err != nil {
		return nil, usage(err)
	}
	if err := a.access.complete(at); err != nil {
		return nil, usage(err)
	}
	if c := at.TLS(); c != nil && c.InsecureSkipVerify {
		a.say("%v: the server's certificate is not verified: anybody may answer in its place", at)
	}
	return at, nil
}

// open returns a Client of the Redis in use, which has answered, and a function that closes it.
func (a *app) open(ctx context.Context, options ...holdfast.Option) (*holdfast.Client, func(), error) {
	at, err := a.target()
	if err != nil {
		return nil, nil, err
	}
	client, shut, err := a.connect(ctx, at, options...)
	if err != nil {
		shut()
	}
	return client, shut, err
}

// connect returns a Client of that Redis, and a function that closes it. If there is an error, Redis has not
// answered, or with a refusal.
func (a *app) connect(ctx context.Context, at *address.Address, options ...holdfast.Option) (*holdfast.Client, func(), error) {
	rdb := at.Client()
	options = append([]holdfast.Option{holdfast.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
		holdfast.WithKeyPrefix(a.access.keyPrefix.read())}, options...)
	client := holdfast.New(rdb, options...)
	shut := func() {
		_ = client.Close()
		_ = rdb.Close()
	}
	return client, shut, a.reached(ctx, rdb, at)
}

// second returns a go-redis client of the Redis in use, for what the Client does not do. That client heeds contexts.
func (a *app) second() (redis.UniversalClient, error) {
	at, err := a.target()
	if err != nil {
		return nil, err
	}
	rdb := at.Client()
	switch c := rdb.(type) {
	case *redis.Client:
		c.Options().ContextTimeoutEnabled = true // before its first use
	case *redis.ClusterClient:
		c.Options().ContextTimeoutEnabled = true
	}
	return rdb, nil
}
