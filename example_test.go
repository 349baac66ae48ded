package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// embeddedRedis stands in for your Redis:
//
//	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
func embeddedRedis() (rdb *redis.Client, stop func()) {
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // leases run out as time passes
	if err := server.Start(); err != nil {
		panic(err)
	}
	rdb = redis.NewClient(&redis.Options{Addr: server.Addr()})
	return rdb, func() {
		_ = rdb.Close()
		server.Close()
	}
}

func Example() {
	rdb, stop := embeddedRedis()
	defer stop()

	client := holdfast.New(rdb)
	defer client.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	l, err := client.Mutex("orders:42").Lock(ctx) // ctx bounds the wait
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx) // right even when ctx is already cancelled

	held := l.Context(ctx) // cancelled if the lock is lost
	fmt.Println("charging, held:", held.Err() == nil, "token:", l.Token() > 0)
	// Output: charging, held: true token: true
}

func ExampleDo() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb)
	defer client.Close()

	err := holdfast.Do(context.Background(), client.Mutex("orders:42"), func(ctx context.Context) error {
		fmt.Println("charging") // with ctx: it is cancelled if the lock is lost
		return nil
	})
	fmt.Println(err)
	// Output:
	// charging
	// <nil>
}

// A context that carries a lease re-enters the lock: a function that locks can call another
// function that locks the same name.
func ExampleDo_reentry() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb)
	defer client.Close()
	account := client.Mutex("account:7")

	withdraw := func(ctx context.Context) error {
		return holdfast.Do(ctx, account, func(context.Context) error {
			fmt.Println("withdraw")
			return nil
		})
	}
	err := holdfast.Do(context.Background(), account, func(ctx context.Context) error {
		return errors.Join(withdraw(ctx), withdraw(ctx))
	})
	fmt.Println(err)
	// Output:
	// withdraw
	// withdraw
	// <nil>
}

// A caller that does not get the lock in time does something else.
func ExampleDo_busy() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb)
	defer client.Close()
	m := client.Mutex("daily-report")
	ctx := context.Background()

	other, err := m.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer other.Release(ctx)

	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err = holdfast.Do(short, m, func(context.Context) error { return nil })
	switch {
	case errors.Is(err, holdfast.ErrBusy):
		fmt.Println("yesterday's report will do")
	case err != nil:
		fmt.Println(err)
	}
	// Output: yesterday's report will do
}

// Work under Do finds its lease in its context: the token for the resource that it writes to, and how
// often the lock is held.
func ExampleLeaseFrom() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb)
	defer client.Close()
	orders := client.Mutex("orders:42")

	err := holdfast.Do(context.Background(), orders, func(ctx context.Context) error {
		l, ok := holdfast.LeaseFrom(ctx, orders)
		if !ok {
			return errors.New("called without the lock")
		}
		fmt.Println("token:", l.Token() > 0, "leases:", l.HoldCount())
		return nil
	})
	fmt.Println(err)
	// Output:
	// token: true leases: 1
	// <nil>
}

// Java's tryLock(waitTime, leaseTime, unit): the wait and the lease have bounds of their own.
func ExampleWaitAtMost() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb)
	defer client.Close()
	ctx := context.Background()
	report := func(context.Context) error { fmt.Println("a new report"); return nil }

	err := holdfast.Do(ctx, client.Mutex("report", holdfast.Fixed(10*time.Second)), report, holdfast.WaitAtMost(2*time.Second))
	if errors.Is(err, holdfast.ErrBusy) {
		fmt.Println("another is at it")
	}
	// Output: a new report
}

// The template method of many Java programs, executeInLock(name, wait, lease, action), is one line.
func ExampleWaitAtMost_template() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb)
	defer client.Close()

	executeInLock := func(ctx context.Context, name string, wait, lease time.Duration, action func(context.Context) error) error {
		return holdfast.Do(ctx, client.Mutex(name, holdfast.Fixed(lease)), action, holdfast.WaitAtMost(wait))
	}
	err := executeInLock(context.Background(), "orders:42", time.Second, 10*time.Second, func(context.Context) error {
		fmt.Println("charging")
		return nil
	})
	fmt.Println(err)
	// Output:
	// charging
	// <nil>
}

// At the end of a program: what holds locks may finish, within a bound, and nothing new begins.
func ExampleClient_Shutdown() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb)

	started, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- holdfast.Do(context.Background(), client.Mutex("orders:42"), func(ctx context.Context) error {
			close(started)
			time.Sleep(10 * time.Millisecond) // charging
			return context.Cause(ctx)
		})
	}()
	<-started
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	fmt.Println("shutdown:", client.Shutdown(ctx))
	fmt.Println("work:", <-done)
	// Output:
	// shutdown: <nil>
	// work: <nil>
}

// Two processes start the same job, by clocks that differ. The job is done in a moment, and the lock
// stays for longer than the clocks differ.
func ExampleAtLeast() {
	rdb, stop := embeddedRedis()
	defer stop()
	a, b := holdfast.New(rdb), holdfast.New(rdb) // two processes
	defer a.Close()
	defer b.Close()

	for _, client := range []*holdfast.Client{a, b} {
		err := holdfast.Do(context.Background(), client.Mutex("nightly"), func(context.Context) error {
			fmt.Println("the job runs")
			return nil
		}, holdfast.WaitAtMost(0), holdfast.AtLeast(30*time.Second))
		if errors.Is(err, holdfast.ErrBusy) {
			fmt.Println("it has run")
		}
	}
	// Output:
	// the job runs
	// it has run
}

// A hook for every lock of a program: the name for the log, and the token where there is one.
func ExampleOnAcquire() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb)
	defer client.Close()

	log := holdfast.OnAcquire(func(_ context.Context, held holdfast.Handle) {
		if l, ok := held.(*holdfast.Lease); ok {
			fmt.Println(held.Name(), "token:", l.Token() > 0)
		}
	})
	err := holdfast.Do(context.Background(), client.Mutex("orders:42"), func(context.Context) error { return nil }, log)
	fmt.Println(err)
	// Output:
	// orders:42 token: true
	// <nil>
}

// The context of a lease ends with the lease, and its cause says why.
func ExampleClient_Mutex_context() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb)
	defer client.Close()
	ctx := context.Background()

	// The lease is not renewed, so it is lost while the work goes on.
	l, err := client.Mutex("import", holdfast.Fixed(time.Second)).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)

	held := l.Context(ctx)
	<-held.Done() // the work notices, and stops
	fmt.Println("lost:", errors.Is(context.Cause(held), holdfast.ErrLost))
	// Output: lost: true
}

// TryLock asks once.
func ExampleClient_Mutex_tryLock() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb)
	defer client.Close()
	ctx := context.Background()
	nightly := client.Mutex("nightly")

	for range 2 {
		l, err := nightly.TryLock(ctx)
		switch {
		case errors.Is(err, holdfast.ErrBusy):
			fmt.Println("another does it")
		case err != nil:
			fmt.Println(err)
		default:
			defer l.Release(ctx)
			fmt.Println("mine")
		}
	}
	// Output:
	// mine
	// another does it
}

// One process begins a hold, and another process ends it.
func ExampleClient_Mutex_detach() {
	rdb, stop := embeddedRedis()
	defer stop()
	ctx := context.Background()
	here, there := holdfast.New(rdb), holdfast.New(rdb) // two processes
	defer here.Close()
	defer there.Close()

	l, err := here.Mutex("migration").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	owner, err := l.Detach(ctx) // no longer renewed, and not released
	if err != nil {
		fmt.Println(err)
		return
	}
	text := owner.String() // to be handed to the other process, and to nobody else

	owner, err = holdfast.ParseOwner(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	taken, err := there.Mutex("migration").Attach(ctx, owner)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the same hold:", taken.Token() == l.Token())
	fmt.Println(taken.Release(ctx))
	// Output:
	// the same hold: true
	// <nil>
}

// A resource that remembers the greatest token it has seen refuses a holder that another holder has
// overtaken.
func ExampleClient_Mutex_token() {
	rdb, stop := embeddedRedis()
	defer stop()
	client := holdfast.New(rdb)
	defer client.Close()
	ctx := context.Background()
	var greatest int64
	write := func(who string, token int64) {
		if token < greatest { // UPDATE ... WHERE token <= $1
			fmt.Println(who, "is refused")
			return
		}
		greatest = token
		fmt.Println(who, "writes")
	}

	slow, err := client.Mutex("account:8", holdfast.Fixed(time.Second)).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	next, err := client.Mutex("account:8").Lock(ctx) // once the slow holder's lease is over
	if err != nil {
		fmt.Println(err)
		return
	}
	defer next.Release(ctx)
	write("the next", next.Token())
	write("the slow one", slow.Token())
	// Output:
	// the next writes
	// the slow one is refused
}

// Three replicas keep one schedule. Each calls Tick with the time that the schedule names, and the
// winner does the work.
func ExampleClient_Tick() {
	rdb, stop := embeddedRedis()
	defer stop()
	ctx := context.Background()

	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for _, replica := range []string{"east", "north", "west"} {
		client := holdfast.New(rdb) // each replica is a process of its own
		won, err := client.Tick(ctx, "report", at, 3*time.Hour)
		fmt.Println(replica, won, err)
		_ = client.Close()
	}
	// Output:
	// east true <nil>
	// north false <nil>
	// west false <nil>
}
