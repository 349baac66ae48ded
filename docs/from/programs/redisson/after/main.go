// Command after sells bolts under a lock that Go shares with Java.
package main

import (
	"context"
	"log"
	"os"

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
	client := holdfast.New(rdb)
	defer client.Close()
	for range 20 {
		if err := sell(ctx, rdb, client); err != nil {
			return err
		}
	}
	return nil
}

// sell takes a bolt from the stock. Two that did so at once would read the same number.
func sell(ctx context.Context, rdb *redis.Client, client *holdfast.Client) error {
	l, err := client.Mutex("bolt").Lock(ctx)
	if err != nil {
		return err
	}
	defer l.Release(ctx)
	held := l.Context(ctx) // ends if the lock is lost
	left, err := rdb.Get(held, "stock:bolt").Int()
	if err != nil {
		return err
	}
	return rdb.Set(held, "stock:bolt", left-1, 0).Err()
}
