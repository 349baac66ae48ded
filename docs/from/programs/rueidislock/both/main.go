// Command both sells bolts under a lock of rueidislock and one of Holdfast, while a service changes over.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-go/holdfast"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr string) error {
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		TryNextAfter: time.Second, // also the limit of each request
	})
	if err != nil {
		return err
	}
	defer locks.Close()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
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

// both runs work while it holds the lock of rueidislock and then that of Holdfast.
func both(ctx context.Context, locks rueidislock.Locker, client *holdfast.Client, work func(context.Context) error) error {
	held, release, err := locks.WithContext(ctx, "bolt")
	if err != nil {
		return err
	}
	defer release()
	return holdfast.Do(held, client.Mutex("bolt"), work)
}

// sell takes a bolt from the stock. Two that did so at once would read the same number.
func sell(ctx context.Context, rdb *redis.Client) error {
	left, err := rdb.Get(ctx, "stock:bolt").Int()
	if err != nil {
		return err
	}
	return rdb.Set(ctx, "stock:bolt", left-1, 0).Err()
}
