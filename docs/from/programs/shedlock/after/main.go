// Command after writes the nightly report on one replica only, under a lock of Holdfast.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

func main() {
	err := run(context.Background(), os.Args[1])
	if err != nil && !errors.Is(err, holdfast.ErrBusy) { // busy: another replica writes it, or has written it
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr string) error {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	lock := client.Mutex("report", holdfast.MaxHold(10*time.Minute))
	return holdfast.Do(ctx, lock, func(ctx context.Context) error { return write(ctx, rdb) },
		holdfast.WaitAtMost(0), holdfast.AtLeast(30*time.Second))
}

func write(ctx context.Context, rdb *redis.Client) error {
	return rdb.Incr(ctx, "reports").Err()
}
