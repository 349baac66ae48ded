// Workers calls an API that allows three requests at a time. Ten workers, which stand for as many
// processes, call it. Each worker takes a permit of one Semaphore around its call.
//
//	go run ./examples/workers
//	REDIS_URL=redis://localhost:6379 go run ./examples/workers
package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
)

func main() { embedded.Main(run) }

const (
	workers = 10
	allowed = 3
)

func run(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	name := "workers:" + uuid.NewString()
	defer rdb.Del(ctx, name) // a semaphore stays until it is deleted

	api := &api{}
	errs := make(chan error, workers)
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() { errs <- work(ctx, rdb, name, i, api, out) })
	}
	all.Wait()
	for range workers {
		if err := <-errs; err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d calls, at most %d at a time\n", workers, api.most.Load())
	if api.most.Load() > allowed {
		return fmt.Errorf("the API was called %d times at once", api.most.Load())
	}
	return nil
}

// work is one worker. It has a Client of its own, as a process would have.
func work(ctx context.Context, rdb *redis.Client, name string, i int, api *api, out io.Writer) error {
	client := holdfast.New(rdb)
	defer client.Close()
	permits := client.Semaphore(name)
	// The first worker sets the number of permits; the other workers find it already set.
	if _, err := permits.TrySetPermits(ctx, allowed); err != nil {
		return err
	}
	if err := permits.Acquire(ctx, 1); err != nil {
		return err
	}
	defer permits.Release(ctx, 1)
	fmt.Fprintf(out, "worker %d calls, %d at a time\n", i, api.call())
	return nil
}

// api counts the calls that run at the same time.
type api struct{ inside, most atomic.Int64 }

func (a *api) call() int64 {
	n := a.inside.Add(1)
	defer a.inside.Add(-1)
	for most := a.most.Load(); n > most && !a.most.CompareAndSwap(most, n); most = a.most.Load() {
	}
	time.Sleep(50 * time.Millisecond)
	return n
}
