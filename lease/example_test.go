package lease_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/lease"
)

// newClients stands for the Clients that two of your processes have.
var newClients = clienttest.Embedded

// A job with a fixed lease finds out between two steps that it needs more time.
func ExampleLease_Extend() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := client.Mutex("import", lease.Fixed(10*time.Second)).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)
	fmt.Println(l.Extend(ctx, time.Minute))
	fmt.Println("nearly a minute:", time.Until(l.Deadline()) > 55*time.Second)
	// Output:
	// <nil>
	// nearly a minute: true
}

// Why a lease has ended.
func ExampleLease_Err() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := client.Mutex("import", lease.Fixed(200*time.Millisecond)).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.Err())
	<-l.Done()
	switch err := l.Err(); {
	case errors.Is(err, lease.ErrExpired): // first: it matches ErrLost too
		fmt.Println("its time was over")
	case errors.Is(err, lease.ErrLost):
		fmt.Println("another may hold it")
	}
	// Output:
	// <nil>
	// its time was over
}

// The lock stays held for longer than the clocks of those that start the job differ.
func ExampleLease_AtLeast() {
	client, other, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := client.Mutex("nightly").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.AtLeast(ctx, time.Minute), l.Release(ctx))
	_, err = other.Mutex("nightly").TryLock(ctx)
	fmt.Println("still held:", errors.Is(err, lease.ErrBusy))
	// Output:
	// <nil> <nil>
	// still held: true
}

// A safety net under a renewed lease, for a release that is forgotten.
func ExampleMaxHold() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := client.Mutex("import", lease.MaxHold(200*time.Millisecond)).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	<-l.Done()
	fmt.Println(errors.Is(l.Err(), lease.ErrMaxHold))
	// Output: true
}

// Leases are renewed or fixed, for the whole Client or for one lock.
func ExampleOption() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	for _, options := range [][]lease.Option{
		nil,                                 // 30 s, renewed every 10 s until it is released
		{lease.Renewed(time.Minute)},        // renewed every 20 s
		{lease.Fixed(5 * time.Second)},      // over after 5 s
		{holdfast.Renewed(2 * time.Second)}, // the root package has the same options
	} {
		l, err := client.Mutex("import", options...).Lock(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(time.Until(l.Deadline()).Round(time.Second), l.Release(ctx))
	}
	// Output:
	// 30s <nil>
	// 59s <nil>
	// 5s <nil>
	// 2s <nil>
}
