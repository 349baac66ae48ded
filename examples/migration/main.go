// Migration starts three replicas of a service at once, as in a deploy. Each brings the database to the newest version
// before it serves. One of them does the work; the others wait, and find it done.
//
//	go run ./examples/migration
//	REDIS_URL=redis://localhost:6379 go run ./examples/migration
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
	"github.com/holdfast-go/holdfast/fence"
)

func main() { embedded.Main(run) }

const newest = 3

// migrate brings the database to the newest version. Any number of replicas may call it at once.
func migrate(ctx context.Context, lock holdfast.Locker, db *database) error {
	work := func(ctx context.Context) error {
		l, ok := holdfast.LeaseFrom(ctx, lock)
		if !ok {
			return errors.New("migrate: not under its lock")
		}
		for version := db.version() + 1; version <= newest; version++ { // read under the lock
			if err := db.apply(ctx, version, l.Token()); err != nil {
				return err // the version is as far as it came, and the next replica goes on there
			}
		}
		return nil
	}
	return holdfast.Do(ctx, lock, work, holdfast.WaitAtMost(5*time.Minute))
}

// database stands for one whose migrations are transactions: each is done as a whole, with its version, or not.
type database struct {
	fence fence.Guard
	mu    sync.Mutex // guards done
	done  []int      // the versions, in the order in which they were applied
}

func (d *database) version() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.done)
}

// apply takes a moment, and then commits the version, unless a later holder of the lock has been here.
func (d *database) apply(ctx context.Context, version int, token int64) error {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return d.fence.Do("schema", token, func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.done = append(d.done, version)
		return nil
	})
}

func run(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	name := "shop:migrations:" + uuid.NewString()
	db := new(database)
	errs := make(chan error, 3)
	for range 3 {
		go func() {
			client := holdfast.New(rdb) // each replica is a process of its own
			defer client.Close()
			errs <- migrate(ctx, client.Mutex(name), db)
		}()
	}
	if err := errors.Join(<-errs, <-errs, <-errs); err != nil {
		return err
	}
	fmt.Fprintf(out, "three replicas have started, and applied %v\n", db.done)
	if len(db.done) != newest {
		return errors.New("not each version once")
	}
	return nil
}
