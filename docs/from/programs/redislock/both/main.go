// Command both sells bolts under a lock of redislock and one of Holdfast, while a service changes over.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
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
	client := holdfast.New(rdb)
	defer client.Close()
	for range 20 {
		err := both(ctx, locks, client, func(ctx context.Context) error { return sell(ctx, rdb) })
		if err != nil {
			return err
		}
	}
	return nil
}

// both runs work while it holds the lock of redislock and then that of Holdfast.
func both(ctx context.Context, locks *redislock.Client, client *holdfast.Client, work func(context.Context) error) error {
	old, err := locks.Obtain(ctx, "lock:bolt", 10*time.Second, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(20 * time.Millisecond),
	})
	if err != nil {
		return err
	}
	defer old.Release(context.WithoutCancel(ctx))
	asked := time.Now()
	left, err := old.TTL(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithDeadline(ctx, asked.Add(left)) // nobody refreshes it
	defer cancel()
	return holdfast.Do(ctx, client.Mutex("bolt"), work)
}

// sell takes a bolt from the stock. Two that did so at once would read the same number.
func sell(ctx context.Context, rdb *redis.Client) error {
	left, err := rdb.Get(ctx, "stock:bolt").Int()
	if err != nil {
		return err
	}
	return rdb.Set(ctx, "stock:bolt", left-1, 0).Err()
}
