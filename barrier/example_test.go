package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// newClient stands for the Client that your program has.
func newClient() (client *holdfast.Client, done func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	server.ClockTTL(true)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	client = holdfast.New(rdb)
	return client, func() {
		_ = client.Close()
		_ = rdb.Close()
		server.Close()
	}
}

// Three workers finish each phase together. The last to come says so.
func ExampleBarrier_Await() {
	client, done := newClient()
	defer done()
	ctx := context.Background()

	phase := client.Barrier("reindex", 3)
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			for n := 1; n <= 2; n++ {
				trip, err := phase.Await(ctx)
				if err != nil {
					fmt.Println(err)
					return
				}
				if trip.Arrival == 0 {
					fmt.Println("phase", n, "is done")
				}
				// A second barrier, so that nobody begins the next phase before that is said.
				_, _ = client.Barrier("said", 3).Await(ctx)
			}
		})
	}
	workers.Wait()
	// Output:
	// phase 1 is done
	// phase 2 is done
}

// One of three parties leaves. The other one that waits is told, and may meet others in the next
// generation.
func ExampleBarrier_Await_broken() {
	client, done := newClient()
	defer done()

	start := client.Barrier("start", 3)
	waiting := make(chan error)
	go func() {
		_, err := start.Await(context.Background())
		waiting <- err
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := start.Await(ctx)
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	fmt.Println(errors.Is(<-waiting, holdfast.ErrBroken))
	// Output:
	// true
	// true
}
