// Results that are made once for each key: by Holdfast's Once, and as they are made without it.

package peer

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/once"
)

// Once makes results in one process.
type Once interface {
	// Value returns the result of the key. If there is none, one of all callers makes it.
	Value(ctx context.Context, key string, work func() string) (string, error)
	Close()
}

// keepResults is how long results are kept.
const keepResults = time.Minute

func onceHoldfast(addr string) Once {
	client, closeAll := NewClient(addr)
	return holdfastOnce{client.Once("bench", once.Keep(keepResults)), closeAll}
}

type holdfastOnce struct {
	once  *holdfast.Once
	close func()
}

func (o holdfastOnce) Close() { o.close() }

func (o holdfastOnce) Value(ctx context.Context, key string, work func() string) (string, error) {
	return once.Value(ctx, o.once, key, func(context.Context) (string, error) { return work(), nil })
}

// onceRedsync returns what programs do without a Once: a singleflight.Group for the callers of the process, and
// a lock for the processes, under which one makes the result and the others find it.
func onceRedsync(options ...redsync.Option) func(addr string) Once {
	return func(addr string) Once {
		p, _ := openRedsync(options...)(addr) // it never fails
		return &redsyncOnce{redsyncProcess: p.(*redsyncProcess)}
	}
}

type redsyncOnce struct {
	*redsyncProcess
	group singleflight.Group
}

// Value implements Once. It looks for the result before it asks for the lock.
func (o *redsyncOnce) Value(ctx context.Context, key string, work func() string) (string, error) {
	value, err, _ := o.group.Do(key, func() (any, error) {
		found, err := o.rdb.Get(ctx, key).Result()
		if !errors.Is(err, redis.Nil) {
			return found, err
		}
		var failed error
		err = o.Lock(key+":lock").Pair(ctx, func() { found, failed = o.find(ctx, key, work) })
		return found, errors.Join(err, failed)
	})
	text, _ := value.(string)
	return text, err
}

// find makes the result, under the lock, unless another process has made it.
func (o *redsyncOnce) find(ctx context.Context, key string, work func() string) (string, error) {
	found, err := o.rdb.Get(ctx, key).Result()
	if !errors.Is(err, redis.Nil) {
		return found, err
	}
	found = work()
	return found, o.rdb.Set(ctx, key, found, keepResults).Err()
}
