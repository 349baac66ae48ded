package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
)

// newClients stands for the Clients that two of your processes have.
var newClients = clienttest.Embedded

// Three workers finish each phase together. The last to come says so.
func ExampleBarrier_Await() {
	client, _, done := newClients()
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

// One of three parties leaves. The other one that waits is notified, and may meet others in the
// next generation.
func ExampleBarrier_Await_broken() {
	client, other, done := newClients()
	defer done()

	start := client.Barrier("start", 3)
	waiting := make(chan error)
	go func() {
		_, err := start.Await(context.Background())
		waiting <- err
	}()
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	go func() { // it leaves once both wait
		for ctx.Err() == nil {
			if state, err := other.Barrier("start", 3).State(ctx); err == nil && state.Arrived == 2 {
				leave()
			}
			time.Sleep(time.Millisecond) // as only an example must
		}
	}()
	_, err := start.Await(ctx)
	fmt.Println(errors.Is(err, context.Canceled))
	fmt.Println(errors.Is(<-waiting, holdfast.ErrBroken))
	// Output:
	// true
	// true
}

// A worker that fails before its Await would leave the others waiting for it. It resets the barrier, so that
// they are notified.
func ExampleBarrier_Reset() {
	client, other, done := newClients()
	defer done()
	ctx := context.Background()

	waiting := make(chan error)
	go func() {
		_, err := client.Barrier("reindex", 2).Await(ctx)
		waiting <- err
	}()
	phase := other.Barrier("reindex", 2)
	for { // as only an example must
		if state, err := phase.State(ctx); err == nil && state.Arrived == 1 {
			fmt.Println(state.Arrived, "of", state.Parties, "have come")
			break
		}
		time.Sleep(time.Millisecond)
	}
	fmt.Println(phase.Reset(ctx))
	fmt.Println(errors.Is(<-waiting, holdfast.ErrBroken))
	// Output:
	// 1 of 2 have come
	// true <nil>
	// true
}

// The state of the generation under way.
func ExampleBarrier_State() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	phase := client.Barrier("reindex", 1)
	if _, err := phase.Await(ctx); err != nil { // one party waits for nobody
		fmt.Println(err)
		return
	}
	state, err := phase.State(ctx)
	fmt.Println(state.Arrived, "have come,", state.Parties, "are needed", err)
	// Output: 0 have come, 0 are needed <nil>
}
