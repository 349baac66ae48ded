// Redis: a fence in Redis.

package fence

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/errs"
)

var (
	//go:embed lua/pass.lua
	passSource string
	//go:embed lua/set.lua
	setSource string

	passScript = redis.NewScript(passSource)
	setScript  = redis.NewScript(setSource)
)

// DefaultKeep is how long a Redis fence remembers a token if the field Keep is 0: 7 days. By default
// Holdfast keeps the token of an unused lock for 7 days too.
const DefaultKeep = 7 * 24 * time.Hour

// Redis is a fence for data that is stored in Redis. The fence and the locks may be on different
// servers. The server of the fence should not lose writes, because a failover that loses a grant of the
// lock may also lose the tokens that the fence has seen.
type Redis struct {
	// Client is the go-redis client of the server that has the fence.
	Client redis.Scripter
	// Keep is how long the fence remembers the token of a resource after a token has last passed for
	// that resource. The default is DefaultKeep. If Keep is negative, every call fails with an error
	// that matches holdfast.ErrBadArgument.
	Keep time.Duration
	// KeyPrefix is put before the key of each token. It corresponds to holdfast.WithKeyPrefix of a
	// Client. In a cluster KeyPrefix must have no brace.
	KeyPrefix string
}

var _ Fence = Redis{}

func (f Redis) tokenKey(resource string) string {
	return f.KeyPrefix + "holdfast_fence:{" + resource + "}"
}

// check returns an error unless token is positive, and the fence can remember it.
func (f Redis) check(resource string, token int64) error {
	if f.Keep < 0 {
		return fmt.Errorf("fence: a token is remembered for %v: %w", f.Keep, errs.BadArgument)
	}
	return check(resource, token)
}

func (f Redis) keep() int64 {
	if f.Keep == 0 {
		return DefaultKeep.Milliseconds()
	}
	return milliseconds(f.Keep)
}

// milliseconds returns d as Redis takes it: at least 1, unless d is zero.
func milliseconds(d time.Duration) int64 {
	if d > 0 && d < time.Millisecond {
		return 1
	}
	return d.Milliseconds()
}

// Pass implements Fence. After Pass returns and before the program writes, another token may pass. If
// the write is a SET, use the method Set instead.
func (f Redis) Pass(ctx context.Context, resource string, token int64) error {
	if err := f.check(resource, token); err != nil {
		return err
	}
	passed, err := passScript.Run(ctx, f.Client, []string{f.tokenKey(resource)}, token, f.keep()).Int()
	if err == nil && passed == 0 {
		err = stale(resource, token)
	}
	return err
}

// Set sets a key in Redis to a value, if the token passes for that key. The key stays for ttl, which is
// at least 1 ms. If ttl is 0, the key stays for ever. If the token does not pass, the error matches
// ErrStale, and the key stays as it is. If the token is not positive, or if ttl is negative, the error
// matches holdfast.ErrBadArgument, and Set sends nothing. After any other error it is not known whether
// Set has set the key, and the program may call Set again. In a cluster the key must have no brace, so
// that the key and its token are in the same slot.
func (f Redis) Set(ctx context.Context, key string, value any, ttl time.Duration, token int64) error {
	if err := f.check(key, token); err != nil {
		return err
	}
	if ttl < 0 {
		return fmt.Errorf("fence: %q: it stays for %v: %w", key, ttl, errs.BadArgument)
	}
	keys := []string{f.tokenKey(key), key}
	passed, err := setScript.Run(ctx, f.Client, keys, token, f.keep(), value, milliseconds(ttl)).Int()
	if err == nil && passed == 0 {
		err = stale(key, token)
	}
	return err
}
