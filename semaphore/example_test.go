package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
)

// newClients stands for the Clients that two of your processes have.
var newClients = clienttest.Embedded

// An API takes three calls at a time, from all processes together. Ten workers call it.
func ExamplePermitSemaphore_Locker() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()

	calls := client.PermitSemaphore("api:calls", holdfast.Renewed(10*time.Second))
	if _, err := calls.TrySetPermits(ctx, 3); err != nil { // the first process sets it, the others find it set
		fmt.Println(err)
		return
	}
	var inside, tooMany atomic.Int64
	var workers sync.WaitGroup
	for range 10 {
		workers.Go(func() {
			err := holdfast.Do(ctx, calls.Locker(1), func(ctx context.Context) error {
				if inside.Add(1) > 3 {
					tooMany.Add(1)
				}
				defer inside.Add(-1)
				time.Sleep(5 * time.Millisecond) // the call, which ends when ctx does
				return nil
			}, holdfast.WaitAtMost(time.Minute))
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	workers.Wait()
	fmt.Println("calls beyond the third:", tooMany.Load())
	// Output: calls beyond the third: 0
}

// A process dies with a permit: it is free again when its lease is over.
func ExamplePermitSemaphore_Acquire() {
	client, dying, done := newClients()
	defer done()
	ctx := context.Background()
	permits := client.PermitSemaphore("uploads", holdfast.Renewed(time.Second))
	if _, err := permits.TrySetPermits(ctx, 1); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := dying.PermitSemaphore("uploads", holdfast.Renewed(time.Second)).Acquire(ctx, 1); err != nil {
		fmt.Println(err)
		return
	}
	_, err := permits.TryAcquire(ctx, 1)
	fmt.Println("busy:", errors.Is(err, holdfast.ErrBusy))

	_ = dying.Close() // nothing is renewed any more, as after a crash
	l, err := permits.Acquire(ctx, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)
	fmt.Println("it is back")
	// Output:
	// busy: true
	// it is back
}

// A permit has an id, by which another process can give it back.
func ExamplePermitSemaphore_ReleaseID() {
	client, operator, done := newClients()
	defer done()
	ctx := context.Background()
	permits := client.PermitSemaphore("uploads")
	if _, err := permits.TrySetPermits(ctx, 2); err != nil {
		fmt.Println(err)
		return
	}
	l, err := permits.Acquire(ctx, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	id := permits.IDs(l)[0]

	theirs := operator.PermitSemaphore("uploads")
	fmt.Println(theirs.ReleaseID(ctx, id))
	fmt.Println(theirs.Available(ctx))
	fmt.Println("once only:", errors.Is(theirs.ReleaseID(ctx, id), holdfast.ErrNoPermits))
	// Output:
	// <nil>
	// 2 <nil>
	// once only: true
}

// How many permits there are in all may change while some are taken.
func ExamplePermitSemaphore_SetPermits() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	permits := client.PermitSemaphore("uploads")
	if err := permits.SetPermits(ctx, 3); err != nil {
		fmt.Println(err)
		return
	}
	l, err := permits.Acquire(ctx, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)
	if err := permits.SetPermits(ctx, 1); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(permits.Acquired(ctx))
	fmt.Println(permits.Available(ctx)) // two must come back before one is free
	// Output:
	// 2 <nil>
	// -1 <nil>
}

// One process takes a permit, and another gives it back.
func ExampleSemaphore_Acquire() {
	intake, delivery, done := newClients()
	defer done()
	ctx := context.Background()

	slots := intake.Semaphore("warehouse:slots")
	if _, err := slots.TrySetPermits(ctx, 1); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(slots.Acquire(ctx, 1))
	fmt.Println("full:", errors.Is(slots.TryAcquire(ctx, 1), holdfast.ErrBusy))
	fmt.Println(delivery.Semaphore("warehouse:slots").Release(ctx, 1))
	fmt.Println(slots.Available(ctx))
	// Output:
	// <nil>
	// full: true
	// <nil>
	// 1 <nil>
}

// AddPermits changes how many there are in all. Drain takes what is free.
func ExampleSemaphore_AddPermits() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	slots := client.Semaphore("warehouse:slots")
	if _, err := slots.TrySetPermits(ctx, 2); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(slots.AddPermits(ctx, 3))
	fmt.Println(slots.Drain(ctx))
	fmt.Println(slots.Available(ctx))
	// Output:
	// <nil>
	// 5 <nil>
	// 0 <nil>
}

// A caller that need not wait gets an error if all are taken.
func ExamplePermitSemaphore_TryAcquire() {
	client, other, done := newClients()
	defer done()
	ctx := context.Background()
	permits := client.PermitSemaphore("uploads")
	if _, err := permits.TrySetPermits(ctx, 1); err != nil {
		fmt.Println(err)
		return
	}
	l, err := other.PermitSemaphore("uploads").Acquire(ctx, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)
	_, err = permits.TryAcquire(ctx, 1)
	fmt.Println("busy:", errors.Is(err, holdfast.ErrBusy))
	_, err = permits.TryAcquire(ctx, 2)
	fmt.Println("more than there are:", errors.Is(err, holdfast.ErrNoPermits))
	// Output:
	// busy: true
	// more than there are: true
}

// Drain takes whatever is free: this closes a semaphore, and Release opens it again.
func ExampleSemaphore_Drain() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	gate := client.Semaphore("gate")
	if _, err := gate.TrySetPermits(ctx, 3); err != nil {
		fmt.Println(err)
		return
	}
	taken, err := gate.Drain(ctx)
	fmt.Println(taken, err)
	fmt.Println("closed:", errors.Is(gate.TryAcquire(ctx, 1), holdfast.ErrBusy))
	fmt.Println(gate.Release(ctx, taken))
	fmt.Println(gate.TryAcquire(ctx, 1))
	// Output:
	// 3 <nil>
	// closed: true
	// <nil>
	// <nil>
}
