package rwlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
)

// newClients stands for the Clients that two of your processes have.
var newClients = clienttest.Embedded

// Readers hold the lock together; a writer waits for them.
func ExampleRWMutex_RLock() {
	here, there, done := newClients()
	defer done()
	ctx := context.Background()

	one, err := here.RWMutex("prices").RLock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	two, err := there.RWMutex("prices").RLock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = there.RWMutex("prices").TryLock(ctx)
	fmt.Println("a writer is refused:", errors.Is(err, holdfast.ErrBusy))
	fmt.Println(one.Release(ctx), two.Release(ctx))
	// Output:
	// a writer is refused: true
	// <nil> <nil>
}

// A writer goes on as a reader, and no other writer gets in between.
func ExampleRWMutex_Lock_downgrade() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	prices := client.RWMutex("prices")

	w, err := prices.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	// write, and then
	r, err := prices.RLock(w.Context(ctx)) // under the write lease: at once
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Release(ctx))
	fmt.Println(prices.RLocked(ctx))
	fmt.Println(r.Release(ctx))
	// Output:
	// <nil>
	// true <nil>
	// <nil>
}

// A reader that asks to write would wait for itself. It gets an error at once.
func ExampleRWMutex_Lock_upgrade() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	prices := client.RWMutex("prices")

	err := holdfast.Do(ctx, prices.RLocker(), func(ctx context.Context) error {
		_, err := prices.Lock(ctx)
		return err
	})
	fmt.Println(errors.Is(err, holdfast.ErrUpgrade))
	// Output: true
}

// The two sides as Lockers, for Do.
func ExampleRWMutex_RLocker() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	prices := client.RWMutex("prices")

	price := 0
	err := holdfast.Do(ctx, prices, func(context.Context) error { price = 42; return nil })
	fmt.Println(err)
	read, err := holdfast.DoValue(ctx, prices.RLocker(), func(context.Context) (int, error) { return price, nil })
	fmt.Println(read, err)
	// Output:
	// <nil>
	// 42 <nil>
}

// Any process can ask who reads.
func ExampleRWMutex_RHolders() {
	client, operator, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := client.RWMutex("prices").RLock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)
	readers, err := operator.RWMutex("prices").RHolders(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(readers), "which is the right one:", readers[0] == l.Owner())
	// Output: 1 which is the right one: true
}
