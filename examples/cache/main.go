// Cache shows a read/write lock at its usual work: many requests read values that took some expense
// to compute, and now and then one request rebuilds these values. Readers never see a half-built
// cache, and the rebuild does not wait for ever for a quiet moment. After a rebuild the writer goes
// on as a reader, and no other writer gets in between.
//
//	go run ./examples/cache
//	REDIS_URL=redis://localhost:6379 go run ./examples/cache
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
	"github.com/holdfast-go/holdfast/rwlock"
)

func main() { embedded.Main(run) }

// cacheKeys are the two halves of the cache. Both must always have the same version.
const (
	pricesKey = "cache:prices"
	taxesKey  = "cache:taxes"
)

// cache is the cache as one process uses it.
type cache struct {
	rdb  *redis.Client
	lock *rwlock.RWMutex
}

// run lets some readers use the cache while it is rebuilt a few times.
func run(ctx context.Context, rdb *redis.Client, out io.Writer) (err error) {
	client := holdfast.New(rdb)
	defer func() { err = errors.Join(err, client.Close()) }()

	c := cache{rdb, client.RWMutex("cache")}
	if err := c.rebuild(ctx, out, 1); err != nil {
		return err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	reads, failed := 0, error(nil)
	for range 8 {
		wg.Go(func() {
			for reading.Err() == nil {
				err := c.read(ctx)
				mu.Lock()
				reads, failed = reads+1, errors.Join(failed, err)
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	for version := 2; version <= 5 && err == nil; version++ {
		err = c.rebuild(ctx, out, version)
	}
	stop()
	wg.Wait()
	fmt.Fprintf(out, "%d reads, none of a half-built cache\n", reads)
	return errors.Join(err, failed)
}

// read reads both halves. They have the same version as long as read holds the lock.
func (c cache) read(ctx context.Context) error {
	return holdfast.Do(ctx, c.lock.RLocker(), func(ctx context.Context) error {
		prices, err := c.rdb.Get(ctx, pricesKey).Int()
		if err != nil {
			return err
		}
		taxes, err := c.rdb.Get(ctx, taxesKey).Int()
		if err != nil {
			return err
		}
		if prices != taxes {
			return fmt.Errorf("prices of version %d, taxes of version %d", prices, taxes)
		}
		return nil
	})
}

// rebuild writes a new version, and then checks it while others already read.
func (c cache) rebuild(ctx context.Context, out io.Writer, version int) (err error) {
	asked := time.Now()
	w, err := c.lock.Lock(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "version %d: alone after %v\n", version, time.Since(asked).Round(time.Millisecond))
	err = c.write(w.Context(ctx), version)

	// Downgrade: take the read side before the write lease is released.
	r, rerr := c.lock.RLock(w.Context(ctx))
	err = errors.Join(err, rerr, w.Release(ctx))
	if rerr == nil {
		got, gerr := c.rdb.Get(r.Context(ctx), pricesKey).Int()
		if gerr == nil && got != version {
			gerr = fmt.Errorf("version %d after version %d was written", got, version)
		}
		err = errors.Join(err, gerr, r.Release(ctx))
	}
	return err
}

// write pauses between the two halves.
func (c cache) write(ctx context.Context, version int) error {
	if err := c.rdb.Set(ctx, pricesKey, version, time.Hour).Err(); err != nil {
		return err
	}
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return c.rdb.Set(ctx, taxesKey, version, time.Hour).Err()
}
