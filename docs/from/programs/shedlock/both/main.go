// Command both writes the nightly report on one replica only, under a lock of ShedLock and one of Holdfast,
// while the job moves from Java to Go.
package main

import (
	"context"
	"crypto/rand"
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
	return both(ctx, rdb, client, func(ctx context.Context) error { return write(ctx, rdb) })
}

const (
	atMost  = 10 * time.Minute
	atLeast = 30 * time.Second
)

// both runs work while it holds the lock of ShedLock and then that of Holdfast.
func both(ctx context.Context, rdb *redis.Client, client *holdfast.Client, work func(context.Context) error) error {
	asked := time.Now()
	value := "ADDED:" + asked.UTC().Format(time.RFC3339Nano) + "@go:" + rand.Text()
	key := "job-lock:shop:report" // "job-lock", the environment, the name
	taken, err := rdb.SetNX(ctx, key, value, atMost).Result()
	if err != nil {
		return err
	}
	if !taken {
		return holdfast.ErrBusy
	}
	defer func() { // as ShedLock does, it stays until atLeast is over
		left := max(time.Until(asked.Add(atLeast)), time.Millisecond)
		unlock.Run(context.WithoutCancel(ctx), rdb, []string{key}, value, left.Milliseconds())
	}()
	ctx, cancel := context.WithDeadline(ctx, asked.Add(atMost))
	defer cancel()
	return holdfast.Do(ctx, client.Mutex("report"), work, holdfast.WaitAtMost(0), holdfast.AtLeast(atLeast))
}

var unlock = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end`)

func write(ctx context.Context, rdb *redis.Client) error {
	return rdb.Incr(ctx, "reports").Err()
}
