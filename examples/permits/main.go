// Permits has two workers that share two permits. One of them dies with a permit. That permit
// is free again when its lease is over, without any clean-up.
//
//	go run ./examples/permits
//	REDIS_URL=redis://localhost:6379 go run ./examples/permits
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
)

func main() { embedded.Main(run) }

func run(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	name := "permits:" + uuid.NewString()
	defer rdb.Del(ctx, name, "{"+name+"}:timeout")

	dying, living := holdfast.New(rdb), holdfast.New(rdb) // two processes
	defer living.Close()
	permits := living.PermitSemaphore(name, holdfast.Renewed(time.Second))
	if err := permits.SetPermits(ctx, 2); err != nil {
		return err
	}

	theirs, err := dying.PermitSemaphore(name, holdfast.Renewed(time.Second)).Acquire(ctx, 1)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "one worker holds permit %s\n", permits.IDs(theirs)[0])
	mine, err := permits.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	defer mine.Release(ctx)
	if _, err := permits.TryAcquire(ctx, 1); err != nil {
		fmt.Fprintf(out, "none is left: %v\n", err)
	}

	dying.Close() // dying no longer renews, as after a crash
	died := time.Now()
	fmt.Fprintf(out, "that worker dies: %v\n", theirs.Err())
	next, err := permits.Acquire(ctx, 1)
	if err != nil {
		return err
	}
	defer next.Release(ctx)
	fmt.Fprintf(out, "its permit is back after %v\n", time.Since(died).Round(100*time.Millisecond))
	if _, err := permits.Acquire(ctx, 3); err != nil {
		fmt.Fprintf(out, "more than there are in all: %v\n", err)
	}
	return nil
}
