// Waitforn deploys when five workers are ready: each worker counts a latch down, and the
// deployment waits until the count is zero.
//
//	go run ./examples/waitforn
//	REDIS_URL=redis://localhost:6379 go run ./examples/waitforn
package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
)

func main() { embedded.Main(run) }

const workers = 5

func run(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	name := "waitforn:" + uuid.NewString()
	client := holdfast.New(rdb)
	defer client.Close()
	ready := client.Latch(name)
	if _, err := ready.TrySetCount(ctx, workers); err != nil {
		return err
	}
	defer ready.Delete(ctx) // in case the count does not reach zero

	errs := make(chan error, workers)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			time.Sleep(time.Duration(i) * 50 * time.Millisecond) // the worker warms up
			left, err := ready.CountDown(ctx)
			fmt.Fprintf(out, "worker %d is ready, %d to go\n", i, left)
			errs <- err
		})
	}
	patience, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := ready.Wait(patience)
	all.Wait()
	for range workers {
		if err == nil {
			err = <-errs
		}
	}
	if err == nil {
		fmt.Fprintln(out, "all are ready: deploy")
	}
	return err
}
