// Command both sells bolts under a lock of redsync and one of Holdfast, while a service changes over.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
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
	locks := redsync.New(goredis.NewPool(rdb))
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

// both runs work while it holds the lock of redsync and then that of Holdfast.
func both(ctx context.Context, locks *redsync.Redsync, client *holdfast.Client, work func(context.Context) error) error {
	old := locks.NewMutex("lock:bolt", redsync.WithExpiry(10*time.Second))
	if err := old.LockContext(ctx); err != nil {
		return err
	}
	defer old.Unlock()
	ctx, cancel := context.WithDeadline(ctx, old.Until()) // nobody extends it
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
