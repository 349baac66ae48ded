// Debounce has two replicas that rebuild an index after each change. Changes come in bursts, and one rebuild after the
// last of a burst is enough, on whichever replica that change came in. With Supersede the newest call wins: the work
// of the one before ends, and the older ones that wait return.
//
//	go run ./examples/debounce
//	REDIS_URL=redis://localhost:6379 go run ./examples/debounce
package main

import (
	"context"
	"errors"
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
	quiet   = 200 * time.Millisecond // without a change, before the index is rebuilt
	between = 20 * time.Millisecond  // between the changes of a burst
	changes = 6
)

// changed rebuilds the index once no newer change has come for a while, in this process or another. It reports whether
// it did.
func changed(ctx context.Context, client *holdfast.Client, index string, rebuild func(context.Context) error) (bool, error) {
	lock := client.Mutex(index, holdfast.Supersede(), holdfast.Grace(5*time.Second))
	err := holdfast.Do(ctx, lock, func(ctx context.Context) error {
		select {
		case <-time.After(quiet):
			return rebuild(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if errors.Is(err, holdfast.ErrSuperseded) {
		return false, nil
	}
	return err == nil, err
}

func run(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	replicas := []*holdfast.Client{holdfast.New(rdb), holdfast.New(rdb)}
	defer replicas[0].Close()
	defer replicas[1].Close()
	index := "examples:index:" + uuid.NewString()

	var rebuilt, left atomic.Int32
	rebuild := func(ctx context.Context) error {
		rebuilt.Add(1)
		return ctx.Err()
	}
	failures := make([]error, changes)
	var all sync.WaitGroup
	for n := range changes {
		all.Go(func() {
			did, err := changed(ctx, replicas[n%2], index, rebuild)
			if failures[n] = err; err == nil && !did {
				left.Add(1)
			}
		})
		time.Sleep(between)
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%d changes: rebuilt %d time, left to a newer change %d times\n", changes, rebuilt.Load(), left.Load())
	return err
}
