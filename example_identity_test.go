// Who holds a lock: how another process finds out, and how a refused caller does.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lease"
)

// A service says who it is, and what it is doing. An operator's tool asks who holds a lock.
func ExampleWithIdentity() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer rdb.Close()
	service := holdfast.New(rdb, holdfast.WithIdentity("billing-7f9c/pid 12"))
	defer service.Close()
	err := holdfast.Do(context.Background(), service.Mutex("index"), func(ctx context.Context) error {
		lease.Note(ctx, "rebuilding index 7")
		return nil
	})
	if err != nil {
		log.Print(err)
	}

	// In the tool:
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client := holdfast.New(rdb)
	defer client.Close()
	i, err := client.Inspect(ctx, "index")
	if err != nil {
		log.Print(err)
		return
	}
	for _, h := range i.Holders {
		fmt.Printf("held by %s, which is %s, for %v\n", h.Who, h.Note, i.At.Sub(i.HeldSince))
	}
	for n, w := range i.Queue {
		fmt.Printf("%d: %s waits since %v\n", n+1, w.Who, w.Since)
	}
}

// A refused try knows who holds the lock.
func ExampleBusyError() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	held, err := client.Mutex("orders:42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer held.Release(ctx)

	other := holdfast.New(rdb) // another process
	defer other.Close()
	_, err = other.Mutex("orders:42").TryLock(ctx)
	var busy *holdfast.BusyError
	if errors.As(err, &busy) {
		fmt.Println("it is the first one's:", busy.Holder == held.Owner(), "for half a minute at the most:", busy.Left <= 30*time.Second)
	}
	// Output: it is the first one's: true for half a minute at the most: true
}
