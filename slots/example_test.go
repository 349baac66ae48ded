package slots_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/slots"
)

// newClients stands for the Clients that two of your processes have.
var newClients = clienttest.Embedded

// Each process has its own worker id for its ids, and stops making ids when it loses it. If a process dies, nobody
// gets its worker id until a minute after its lease, so clocks may differ by that much.
func ExampleSlots_Acquire() {
	client, other, done := newClients()
	defer done()
	ctx := context.Background()

	begin := func(client *holdfast.Client) (slots.Slot, error) {
		workers := client.Slots("worker-id", 1024, slots.Quarantine(time.Minute))
		slot, err := workers.Acquire(ctx)
		if err != nil {
			return slot, err
		}
		fmt.Println("makes ids as worker", slot.Number())
		return slot, nil
	}
	mine, err := begin(client)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer mine.Release(ctx)
	theirs, err := begin(other)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer theirs.Release(ctx)

	nextID := func(slot slots.Slot, sequence int64) (int64, error) {
		if err := slot.Err(); err != nil {
			return 0, err // another may have the number before long
		}
		return time.Now().UnixMilli()<<22 | int64(slot.Number())<<12 | sequence, nil
	}
	id, err := nextID(theirs, 7)
	fmt.Println("worker", id>>12&1023, err)
	// Output:
	// makes ids as worker 0
	// makes ids as worker 1
	// worker 1 <nil>
}

// A Slot is a lease: it has a token, and a context that ends with it.
func ExampleSlot_Number() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()

	slot, err := client.Slots("replica", 3).Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	held := slot.Context(ctx)
	fmt.Println(slot.Number(), slot.Token() > 0, held.Err())
	_ = slot.Release(ctx)
	fmt.Println(errors.Is(context.Cause(held), holdfast.ErrReleased))
	// Output:
	// 0 true <nil>
	// true
}

// All numbers are taken.
func ExampleSlots_TryAcquire() {
	client, other, done := newClients()
	defer done()
	ctx := context.Background()

	slot, err := client.Slots("port", 1).TryAcquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = other.Slots("port", 1).TryAcquire(ctx)
	fmt.Println(slot.Number(), errors.Is(err, holdfast.ErrBusy))
	_ = slot.Release(ctx)
	// Output: 0 true
}

// A process asks for the number that it had before, so that its caches are of use.
func ExamplePrefer() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()

	before := 5 // as it has stored it
	slot, err := client.Slots("shard", 16, slots.Prefer(before)).Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer slot.Release(ctx)
	fmt.Println(slot.Number())
	// Output: 5
}

// Work under a number, by Do.
func ExampleSlots_Locker() {
	client, _, done := newClients()
	defer done()

	replicas := client.Slots("replica", 3)
	err := holdfast.Do(context.Background(), replicas.Locker(), func(ctx context.Context) error {
		slot, _ := replicas.LeaseFrom(ctx)
		free, err := replicas.Free(ctx)
		fmt.Println("replica", slot.Number(), "of", replicas.Size(), "and", free, "more may come")
		return err
	})
	fmt.Println(err)
	// Output:
	// replica 0 of 3 and 2 more may come
	// <nil>
}

// An operator knows that the holder is gone, and does not wait for the quarantine.
func ExampleSlots_ForceRelease() {
	client, other, done := newClients()
	defer done()
	ctx := context.Background()

	gone, err := client.Slots("worker-id", 1, slots.Quarantine(time.Hour)).Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	workers := other.Slots("worker-id", 1)
	fmt.Println(workers.ForceRelease(ctx, gone.Number()))
	slot, err := workers.TryAcquire(ctx)
	fmt.Println(slot.Number(), err)
	_ = slot.Release(ctx)
	// Output:
	// true <nil>
	// 0 <nil>
}
