// Redsync takes part over go-redis.

package peer

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// tunedRedsync makes redsync ask more often than by default, where redsync waits 50 to 250 ms. It
// also keeps redsync from giving up after 32 times.
func tunedRedsync() []redsync.Option {
	return []redsync.Option{
		redsync.WithTries(math.MaxInt),
		redsync.WithRetryDelayFunc(func(int) time.Duration {
			return 5*time.Millisecond + rand.N(10*time.Millisecond)
		}),
	}
}

func openRedsync(options ...redsync.Option) func(string) (Process, error) {
	return func(addr string) (Process, error) {
		pool := 0
		if len(options) > 0 {
			pool = poolSize
		}
		rdb := redis.NewClient(&redis.Options{Addr: addr, PoolSize: pool})
		return &redsyncProcess{rdb, redsync.New(goredis.NewPool(rdb)), options}, nil
	}
}

type redsyncProcess struct {
	rdb     *redis.Client
	locks   *redsync.Redsync
	options []redsync.Option
}

func (p *redsyncProcess) Close() { p.rdb.Close() }

func (p *redsyncProcess) Lock(name string) Lock {
	return redsyncLock{p.locks.NewMutex(name, p.options...)}
}

type redsyncLock struct{ mutex *redsync.Mutex }

// Pair tries again when redsync gives up.
func (l redsyncLock) Pair(ctx context.Context, work func()) error {
	for {
		err := l.mutex.LockContext(ctx)
		if err == nil {
			break
		}
		var taken *redsync.ErrTaken
		if ctx.Err() != nil || !errors.Is(err, redsync.ErrFailed) && !errors.As(err, &taken) {
			return errors.Join(ctx.Err(), err)
		}
	}
	if work != nil {
		work()
	}
	_, err := l.mutex.UnlockContext(context.Background())
	return err
}
