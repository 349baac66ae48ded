// Stock sells 100 units, five of each of 20 things, to 160 buyers who come to four processes at
// once. A sale reads how many units are left, takes the money, and writes the new number.
// Without a lock, more units are sold than there are. With 16 stripes for the things, exactly
// as many are sold as there are, and buyers of different things seldom wait for each other.
//
//	go run ./examples/stock
//	REDIS_URL=redis://localhost:6379 go run ./examples/stock
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
)

func main() { embedded.Main(run) }

const (
	things    = 20
	units     = 5 // units of each thing
	buyers    = 8 // buyers for each thing
	processes = 4
	stripes   = 16
)

func run(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	s := store{rdb, "stock:" + uuid.NewString()}
	sold, took, err := s.day(ctx, s.sell)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "without a lock: %d units, %d sold, in %v\n", things*units, sold, took)

	s = store{rdb, "stock:" + uuid.NewString()}
	if sold, took, err = s.day(ctx, s.sellLocked); err != nil {
		return err
	}
	fmt.Fprintf(out, "with %d stripes: %d units, %d sold, in %v\n", stripes, things*units, sold, took)
	if sold != things*units {
		return errors.New("not exactly what there was")
	}
	return nil
}

// store keeps its stock in Redis.
type store struct {
	rdb  *redis.Client
	name string
}

func (s store) shelf(thing int) string { return fmt.Sprintf("%s:thing:%d", s.name, thing) }

// sellLocked sells one unit, if there is one, under the lock for that thing.
func (s store) sellLocked(ctx context.Context, client *holdfast.Client, thing int) (sold bool, err error) {
	lock := client.Striped(s.name, stripes).For(s.shelf(thing))
	return holdfast.DoValue(ctx, lock, func(ctx context.Context) (bool, error) {
		return s.sell(ctx, client, thing)
	})
}

// sell is correct only if no other sale of the same thing runs at the same time.
func (s store) sell(ctx context.Context, _ *holdfast.Client, thing int) (sold bool, err error) {
	left, err := s.rdb.Get(ctx, s.shelf(thing)).Int()
	if err != nil || left == 0 {
		return false, err
	}
	time.Sleep(5 * time.Millisecond) // takes the money
	return true, s.rdb.Set(ctx, s.shelf(thing), left-1, time.Hour).Err()
}

// sale sells one unit of a thing in the process of that client, and reports whether it did.
type sale func(ctx context.Context, client *holdfast.Client, thing int) (bool, error)

// day fills the shelves and lets all buyers in at once.
func (s store) day(ctx context.Context, sell sale) (sold int, took time.Duration, err error) {
	var keys []string
	for thing := range things {
		keys = append(keys, s.shelf(thing))
		if err := s.rdb.Set(ctx, s.shelf(thing), units, time.Hour).Err(); err != nil {
			return 0, 0, err
		}
	}
	defer s.rdb.Del(ctx, append(keys, "holdfast_stripes:"+s.name)...)
	var clients []*holdfast.Client
	for range processes {
		client := holdfast.New(s.rdb)
		defer client.Close()
		clients = append(clients, client)
	}

	var all sync.WaitGroup
	var mu sync.Mutex // guards sold and err
	began := time.Now()
	for i := range things * buyers {
		all.Go(func() {
			ok, failure := sell(ctx, clients[i%processes], i/buyers)
			mu.Lock()
			defer mu.Unlock()
			err = errors.Join(err, failure)
			if ok {
				sold++
			}
		})
	}
	all.Wait()
	return sold, time.Since(began).Round(time.Millisecond), err
}
