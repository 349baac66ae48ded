// The options of a Client, of a lock and of Do, and ways to look at locks.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
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

	l := holdfast.SyncLocker(context.Background(), client.Mutex("orders:42"))
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

// What happens at the names under a prefix, as it happens.
func ExampleClient_Watch() {
	client, _, done := clienttest.Embedded()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := client.Mutex("orders:42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	for e := range client.Watch(ctx, "orders:*") {
		switch e.What {
		case holdfast.EventLooked: // after each look: all that is there, or why that is not known
			if e.Err != nil {
				fmt.Println(e.Err)
			}
			if len(e.Now) > 0 { // somebody else would do that, at some time
				if err := l.Release(ctx); err != nil {
					fmt.Println(err)
				}
			}
		case holdfast.EventReleased:
			fmt.Println(e.Name, "was released by the right one:", e.From.Owner == l.Owner())
			cancel()
		}
	}
	// Output: orders:42 was released by the right one: true
}

// During a migration nobody runs the report, on whichever replica.
func ExampleClient_Pause() {
	client, operator, done := clienttest.Embedded()
	defer done()
	ctx, at := context.Background(), time.Now()

	err := operator.Pause(ctx, "report", holdfast.Until(at.Add(time.Hour)), holdfast.Because("migration"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Tick(ctx, "report", at, time.Hour)
	fmt.Println("paused:", errors.Is(err, holdfast.ErrPaused))
	// Output: paused: true
}

// After Resume the paused work goes on. A Do that is Pausable waits for that.
func ExampleClient_Resume() {
	client, operator, done := clienttest.Embedded()
	defer done()
	ctx := context.Background()
	err := operator.Pause(ctx, "report", holdfast.Until(time.Now().Add(time.Hour)))
	if err != nil {
		fmt.Println(err)
		return
	}

	work := func(context.Context) error { fmt.Println("done"); return nil }
	err = holdfast.Do(ctx, client.Mutex("report"), work, holdfast.Pausable(), holdfast.WaitAtMost(0))
	fmt.Println("paused:", errors.Is(err, holdfast.ErrPaused))
	if err := operator.Resume(ctx, "report"); err != nil {
		fmt.Println(err)
		return
	}
	if err := holdfast.Do(ctx, client.Mutex("report"), work, holdfast.Pausable()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// paused: true
	// done
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

// An Inspection, in a form that may be logged.
func ExampleInspection() {
	client, _, done := clienttest.Embedded()
	defer done()
	ctx := context.Background()

	i, err := client.Inspect(ctx, "orders:42")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(i)
	// Output: "orders:42": free
}

// Options of the whole Client, and options of one lock, which override them.
func ExampleWithDefaults() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb, holdfast.WithDefaults(holdfast.Renewed(10*time.Second), holdfast.MaxHold(time.Hour)))
	defer client.Close()
	ctx := context.Background()

	for _, m := range []*holdfast.Mutex{client.Mutex("orders:42"), client.Mutex("orders:43", holdfast.Fixed(time.Minute))} {
		l, err := m.Lock(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("more than 30 s:", time.Until(l.Deadline()) > 30*time.Second, l.Release(ctx))
	}
	// Output:
	// more than 30 s: false <nil>
	// more than 30 s: true <nil>
}

// A grant counts only if a replica has it. Here there is none, so nobody gets the lock.
func ExampleReplicas() {
	client, _, done := clienttest.Embedded()
	defer done()

	_, err := client.Mutex("orders:42", holdfast.Replicas(1)).TryLock(context.Background())
	fmt.Println(errors.Is(err, holdfast.ErrNotReplicated))
	// Output: true
}

// A lock that goes to Redis at each release, so that processes take turns as often as goroutines do.
func ExampleCohort() {
	client, _, done := clienttest.Embedded()
	defer done()

	err := holdfast.Do(context.Background(), client.Mutex("orders:42", holdfast.Cohort(0, 0)), func(context.Context) error {
		fmt.Println("mine")
		return nil
	})
	fmt.Println(err)
	// Output:
	// mine
	// <nil>
}

// The error does not say whether the work ran. So the work notes it.
func ExampleDo_ran() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb)
	defer client.Close()
	ctx, mutex := context.Background(), client.Mutex("orders:42")
	charge := func(context.Context) error {
		rdb.Del(ctx, "orders:42") // the lock is gone before its release
		return nil
	}

	ran := false
	err := holdfast.Do(ctx, mutex, func(ctx context.Context) error {
		ran = true
		return charge(ctx)
	})
	fmt.Println(ran, errors.Is(err, holdfast.ErrLost))
	// Output: true true
}

// A record of who held what, as an audit asks for.
func ExampleOnAcquire_audit() {
	client, _, done := clienttest.Embedded()
	defer done()
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "token" { // they differ from run to run
			return slog.Attr{}
		}
		return a
	}})
	log := slog.New(handler)

	audit := []holdfast.DoOption{
		holdfast.OnAcquire(func(ctx context.Context, held holdfast.Handle) {
			log.InfoContext(ctx, "granted", "lock", held.Name(), "token", held.(*holdfast.Lease).Token())
		}),
		holdfast.OnExit(func(ctx context.Context, held holdfast.Handle, err error) {
			log.InfoContext(ctx, "ended", "lock", held.Name(), "token", held.(*holdfast.Lease).Token(), "error", err)
		}),
	}
	err := holdfast.Do(context.Background(), client.Mutex("orders:42"), func(context.Context) error { return nil }, audit...)
	fmt.Println(err)
	// Output:
	// level=INFO msg=granted lock=orders:42
	// level=INFO msg=ended lock=orders:42 error=<nil>
	// <nil>
}
