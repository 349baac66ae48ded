// The options of a Client, of a lock and of Do, and what looks at locks.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
)

// Work under a lock that has a result.
func ExampleDoValue() {
	client, _, done := clienttest.Embedded()
	defer done()

	left, err := holdfast.DoValue(context.Background(), client.Mutex("stock:bolt"), func(context.Context) (int, error) {
		return 41, nil
	})
	fmt.Println(left, err)
	// Output: 41 <nil>
}

// A hook for the end of each work under a lock.
func ExampleOnExit() {
	client, _, done := clienttest.Embedded()
	defer done()

	log := holdfast.OnExit(func(_ context.Context, held holdfast.Handle, err error) {
		fmt.Println(held.Name(), "ended:", err)
	})
	_ = holdfast.Do(context.Background(), client.Mutex("orders:42"), func(context.Context) error {
		return errors.New("no money")
	}, log)
	// Output: orders:42 ended: no money
}

// A lock for code that wants a sync.Locker.
func ExampleSyncLocker() {
	client, _, done := clienttest.Embedded()
	defer done()

	var l sync.Locker = holdfast.SyncLocker(context.Background(), client.Mutex("orders:42"))
	l.Lock()
	fmt.Println("mine")
	l.Unlock()
	// Output: mine
}

// What all locks of a Client have in common: a prefix of their names, and how long their leases are.
func ExampleWithNameMapper() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb,
		holdfast.WithNameMapper(func(name string) string { return "shop:" + name }),
		holdfast.WithDefaults(holdfast.Renewed(10*time.Second)))
	defer client.Close()
	ctx := context.Background()

	err := holdfast.Do(ctx, client.Mutex("order:42"), func(ctx context.Context) error {
		n, err := rdb.Exists(ctx, "shop:order:42").Result()
		fmt.Println("in Redis:", n)
		return err
	})
	fmt.Println(err)
	// Output:
	// in Redis: 1
	// <nil>
}

// Losses, and renewals that fail, go to the program's log.
func ExampleWithLogger() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb, holdfast.WithLogger(slog.New(slog.NewJSONHandler(os.Stderr, nil))))
	defer client.Close()
}

// Who holds a lock, and who waits.
func ExampleClient_Inspect() {
	client, operator, done := clienttest.Embedded()
	defer done()
	ctx := context.Background()
	l, err := client.Mutex("orders:42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)

	i, err := operator.Inspect(ctx, "orders:42")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(i.Kind, "held by", len(i.Holders), "which is the right one:", i.Holders[0].Owner == l.Owner())
	// Output: mutex held by 1 which is the right one: true
}

// Everything that is held under a prefix.
func ExampleClient_InspectAll() {
	client, _, done := clienttest.Embedded()
	defer done()
	ctx := context.Background()
	l, err := client.Mutex("orders:42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)

	for i, err := range client.InspectAll(ctx, "orders:*") {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(i.Name, i.Kind)
	}
	// Output: orders:42 mutex
}

// An alarm for locks that are held for too long. One process runs it.
func ExampleClient_Monitor() {
	client, _, done := clienttest.Embedded()
	defer done()
	l, err := client.Mutex("orders:42").Lock(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err = client.Monitor(ctx, holdfast.MonitorOptions{
		Pattern:   "orders:*",
		Threshold: 50 * time.Millisecond, // in production: minutes
		Every:     20 * time.Millisecond, // in production: 10 s, which is the default
		OnHeld: func(h holdfast.HeldLong) {
			fmt.Println(h.Name, "is held for too long")
			cancel()
		},
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// orders:42 is held for too long
	// true
}
