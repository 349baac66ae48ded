// The options of a wire, made from those of the user's client.

package server

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/internal/conn/call"
	"github.com/holdfast-go/holdfast/internal/conn/dial"
)

// Bounds of a wire's I/O. A server is given as long for a reply as the request may take effect.
const (
	// ioTimeout is how long a server is given at first: see Pace.
	ioTimeout = call.Window
	// longestReply is how long a server is given at most, if the program's own client waits for
	// longer or without end.
	longestReply = call.MaxWindow
	DialTimeout  = 2 * time.Second
)

// Options makes the options of a wire from those of the user's client: the same server,
// credentials and TLS, but one connection, short timeouts and no retries. docs/connecting.md
// says what becomes of each option.
func Options(o redis.Options, fs *dial.Feeds) *redis.Options {
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.DialTimeout = shorter(o.DialTimeout, DialTimeout)
	o.ReadTimeout = shorter(o.ReadTimeout, longestReply) // a link gives up sooner: see Pace
	o.WriteTimeout = shorter(o.WriteTimeout, longestReply)
	o.ContextTimeoutEnabled = true

	// Two, though there is never more than one: go-redis starts to dial of its own accord, on a
	// goroutine of its own, once as many dials have failed as the pool has places.
	o.PoolSize, o.MaxConcurrentDials = 2, 1
	o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 0, 0, 0
	o.PipelinePoolSize = -1
	o.PoolTimeout = ioTimeout

	o.Limiter = nil // the program's circuit breaker says nothing about renewals
	o.DisableIdentity = true
	o.MaintNotificationsConfig = NoMaintenance()
	o.ClientSideCache, o.ClientSideCacheConfig = nil, nil
	o.AutoPipelineOptions = nil
	o.PushNotificationProcessor = nil

	o.CredentialsProviderContext = credentialsOf(o, fs)
	o.CredentialsProvider, o.StreamingCredentialsProvider = nil, nil
	if onConnect := o.OnConnect; onConnect != nil {
		o.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
			_, err := dial.Guarded(ctx, "OnConnect", func() (struct{}, error) { return struct{}{}, onConnect(ctx, cn) }, nil)
			return err
		}
	}
	return &o
}

// credentialsOf returns the function that supplies a connection's credentials, in the order in
// which go-redis looks for it; nil if the credentials are in the options themselves.
func credentialsOf(o redis.Options, fs *dial.Feeds) func(context.Context) (string, string, error) {
	var ask func(context.Context) (string, string, error)
	switch {
	case o.StreamingCredentialsProvider != nil:
		return fs.Of(o.StreamingCredentialsProvider).Credentials
	case o.CredentialsProviderContext != nil:
		ask = o.CredentialsProviderContext
	case o.CredentialsProvider != nil:
		ask = func(context.Context) (string, string, error) { //nolint:unparam // ask is of that type
			username, password := o.CredentialsProvider()
			return username, password, nil
		}
	default:
		return nil
	}
	type credentials struct{ username, password string }
	return func(ctx context.Context) (string, string, error) {
		c, err := dial.Guarded(ctx, "CredentialsProvider", func() (c credentials, err error) {
			c.username, c.password, err = ask(ctx)
			return c, err
		}, nil)
		return c.username, c.password, err
	}
}

// NoMaintenance turns off go-redis's notifications of maintenance. With them on, go-redis looks up
// the name of each server while it makes a client, even if that is no name of a host, such as a
// failover client's.
func NoMaintenance() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// shorter returns the user's timeout if it is set and shorter than ours; otherwise ours.
func shorter(users, ours time.Duration) time.Duration {
	if users > 0 && users < ours {
		return users
	}
	return ours
}
