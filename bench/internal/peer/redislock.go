// Redislock takes part over go-redis.

package peer

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

// poolSize is the number of connections with which a peer over go-redis does best. With go-redis's
// default, ten for each core, hundreds of goroutines queue for the connections.
const (
	poolSize  = 64
	largePool = "64 connections"
)

// LockLife is how long redislock's locks live. It is longer than any measurement, because redislock
// does not renew its locks.
const LockLife = time.Minute

// A strategy has a state, so each acquisition needs a strategy of its own.
type strategy func() redislock.RetryStrategy

func linear(ms time.Duration) strategy {
	return func() redislock.RetryStrategy { return redislock.LinearBackoff(ms * time.Millisecond) }
}

func exponential(least, most time.Duration) strategy {
	return func() redislock.RetryStrategy {
		return redislock.ExponentialBackoff(least*time.Millisecond, most*time.Millisecond)
	}
}

func openRedislock(retry strategy, pool int) func(string) (Process, error) {
	return func(addr string) (Process, error) {
		rdb := redis.NewClient(&redis.Options{Addr: addr, PoolSize: pool})
		return &redislockProcess{rdb, redislock.New(rdb), retry}, nil
	}
}

type redislockProcess struct {
	rdb   *redis.Client
	locks *redislock.Client
	retry strategy
}

func (p *redislockProcess) Close() { p.rdb.Close() }

func (p *redislockProcess) Lock(name string) Lock { return &redislockLock{p, name} }

type redislockLock struct {
	process *redislockProcess
	name    string
}

// Pair tries again when redislock gives up, as it does after the lock's life.
func (l *redislockLock) Pair(ctx context.Context, work func()) error {
	var lock *redislock.Lock
	for {
		var err error
		lock, err = l.process.locks.Obtain(ctx, l.name, LockLife, &redislock.Options{RetryStrategy: l.process.retry()})
		if err == nil {
			break
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	if work != nil {
		work()
	}
	return lock.Release(context.Background())
}
