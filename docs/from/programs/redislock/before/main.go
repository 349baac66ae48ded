// Command before sells bolts under a lock of redislock.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	locks := redislock.New(rdb)
	for range 20 {
		if err := sell(ctx, rdb, locks); err != nil {
			return err
		}
	}
	return nil
}

// sell takes a bolt from the stock. Two that did so at once would read the same number.
func sell(ctx context.Context, rdb *redis.Client, locks *redislock.Client) error {
	l, err := locks.Obtain(ctx, "lock:bolt", 10*time.Second, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(20 * time.Millisecond),
	})
	if err != nil {
		return err
	}
	defer l.Release(context.WithoutCancel(ctx))
	left, err := rdb.Get(ctx, "stock:bolt").Int()
	if err != nil {
		return err
	}
	return rdb.Set(ctx, "stock:bolt", left-1, 0).Err() // 10 s after the lock at the latest
}
