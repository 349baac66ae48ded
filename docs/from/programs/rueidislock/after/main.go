// Command after sells bolts under a lock of Holdfast.
package main

import (
	"context"
	"log"
	"os"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
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
	held := l.Context(ctx) // its cause says why it has ended
	left, err := rdb.Get(held, "stock:bolt").Int()
	if err != nil {
		return err
	}
	return fence.Redis{Client: rdb}.Set(held, "stock:bolt", left-1, 0, l.Token())
}
