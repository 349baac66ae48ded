package latch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/latch"
)

// newClients stands for the Clients that two of your processes have.
var newClients = clienttest.Embedded

// A deploy goes on when three workers are ready, in whichever processes they are.
func ExampleLatch_Wait() {
	deploy, worker, done := newClients()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	ready := deploy.Latch("deploy 811: ready")
	if _, err := ready.TrySetCount(ctx, 3, latch.ExpiresIn(time.Hour)); err != nil {
		fmt.Println(err)
		return
	}
	var workers sync.WaitGroup
	for range 3 {
		workers.Go(func() {
			if _, err := worker.Latch("deploy 811: ready").CountDown(ctx); err != nil {
				fmt.Println(err)
			}
		})
	}
	if err := ready.Wait(ctx); err != nil {
		fmt.Println(err)
		return
	}
	workers.Wait()
	fmt.Println("all are ready")
	// Output: all are ready
}

// A latch is set once; then it can be counted down, and set again when it is at zero.
func ExampleLatch_TrySetCount() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()

	shards := client.Latch("shards")
	fmt.Println(shards.TrySetCount(ctx, 2))
	fmt.Println(shards.TrySetCount(ctx, 5))
	fmt.Println(shards.CountDown(ctx))
	fmt.Println(shards.CountDown(ctx))
	fmt.Println(shards.TrySetCount(ctx, 5))
	fmt.Println(shards.Count(ctx))
	// Output:
	// true <nil>
	// false <nil>
	// 1 <nil>
	// 0 <nil>
	// true <nil>
	// 5 <nil>
}

// The deletion of a latch notifies those that wait for it.
func ExampleLatch_Delete() {
	server, client, other, done := clienttest.EmbeddedServer()
	defer done()
	ctx := context.Background()

	shards := client.Latch("shards")
	if _, err := shards.TrySetCount(ctx, 2); err != nil {
		fmt.Println(err)
		return
	}
	waiting := make(chan error)
	go func() { waiting <- shards.Wait(ctx) }()
	for channel := "redisson_countdownlatch__channel__{shards}"; server.PubSubNumSub(channel)[channel] == 0; {
		time.Sleep(time.Millisecond) // until it waits, as only an example must
	}
	fmt.Println(other.Latch("shards").Delete(ctx))
	fmt.Println("told:", errors.Is(<-waiting, holdfast.ErrDeleted))
	// Output:
	// true <nil>
	// told: true
}

// A deferred CountDown counts whatever becomes of the work. It returns how many are left.
func ExampleLatch_CountDown() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	if _, err := client.Latch("shards").TrySetCount(ctx, 3); err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		fmt.Println(client.Latch("shards").CountDown(ctx))
	}
	// Output:
	// 2 <nil>
	// 1 <nil>
	// 0 <nil>
}

// A latch that is not counted down in time runs out, and those that wait are notified.
func ExampleExpiresIn() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	shards := client.Latch("shards")
	if _, err := shards.TrySetCount(ctx, 1, latch.ExpiresIn(time.Second)); err != nil {
		fmt.Println(err)
		return
	}
	if err := shards.Wait(ctx); errors.Is(err, holdfast.ErrDeleted) {
		fmt.Println("nobody has counted it down within a second")
	}
}
