// Redis: a fence in Redis.

package fence

import (
	"context"
	_ "embed"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed lua/pass.lua
	passSource string
	//go:embed lua/set.lua
	setSource string

	passScript = redis.NewScript(passSource)
	setScript  = redis.NewScript(setSource)
)

// DefaultKeep is how long a Redis fence remembers a token by default: as long as Holdfast keeps the token of a
// lock that is not used.
const DefaultKeep = 7 * 24 * time.Hour

// Redis is a fence for what stands in Redis. It may be another Redis than that of the locks, and should be one
// that does not lose writes: a failover that forgets a grant may forget what the fence has seen.
type Redis struct {
	Client redis.Scripter
	// Keep is how long the token of a resource is remembered after it has passed last. The default is
	// DefaultKeep.
	Keep time.Duration
}

var _ Fence = Redis{}

// tokenKey returns the key for the token of a resource.
func tokenKey(resource string) string { return "holdfast_fence:{" + resource + "}" }

func (f Redis) keep() int64 {
	if f.Keep > 0 {
		return f.Keep.Milliseconds()
	}
	return DefaultKeep.Milliseconds()
}

// Pass implements Fence. Between Pass and a write another may pass: use Set where the write is a SET.
func (f Redis) Pass(ctx context.Context, resource string, token int64) error {
	passed, err := passScript.Run(ctx, f.Client, []string{tokenKey(resource)}, token, f.keep()).Int()
	if err == nil && passed == 0 {
		err = stale(resource, token)
	}
	return err
}

// Set sets a key to a value if the token passes for that key; ttl is how long it stays, 0 for ever. If the token
// does not pass, the error matches ErrStale; on any other error it is not known whether the key was set, and Set may
// be called again. In a cluster the key must have no brace, so that its token stands in the same slot.
func (f Redis) Set(ctx context.Context, key string, value any, ttl time.Duration, token int64) error {
	keys := []string{tokenKey(key), key}
	passed, err := setScript.Run(ctx, f.Client, keys, token, f.keep(), value, ttl.Milliseconds()).Int()
	if err == nil && passed == 0 {
		err = stale(key, token)
	}
	return err
}
