package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	l, err := client.Mutex("import", lease.Fixed(time.Second)).Lock(ctx)
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

// The lease ends while the lock is still held, so that the work can stop before another has it.
func ExampleGrace() {
	client, other, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := client.Mutex("import", lease.Fixed(time.Minute), lease.Grace(59*time.Second)).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	<-l.Context(ctx).Done() // after a second
	_, err = other.Mutex("import").TryLock(ctx)
	fmt.Println("still held:", errors.Is(err, lease.ErrBusy))
	fmt.Println("over:", errors.Is(l.Release(ctx), lease.ErrExpired))
	// Output:
	// still held: true
	// over: true
}

// An operator takes a lock away. The holder knows within a round trip or two.
func ExampleNotified() {
	holder, operator, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := holder.Mutex("rebuild", lease.Notified()).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	work := l.Context(ctx)
	fmt.Println(operator.Mutex("rebuild").ForceRelease(ctx))
	<-work.Done()
	fmt.Println("lost:", errors.Is(context.Cause(work), lease.ErrLost))
	// Output:
	// true <nil>
	// lost: true
}

// A holder works for as long as nobody else wants to.
func ExampleLease_Asked() {
	holder, other, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := holder.Mutex("compaction").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	asked := l.Asked()
	fmt.Println(other.Mutex("compaction").Ask(ctx))
	<-asked
	fmt.Println("asked, and still held:", l.Err() == nil)
	fmt.Println(l.Release(ctx))
	// Output:
	// true <nil>
	// asked, and still held: true
	// <nil>
}

// The newest deploy wins. It begins when the one before it has stopped.
func ExampleSupersede() {
	first, second, done := newClients()
	defer done()
	ctx := context.Background()
	older, err := first.Mutex("deploy", lease.Supersede()).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		work := older.Context(ctx)
		<-work.Done()
		fmt.Println("superseded:", errors.Is(context.Cause(work), lease.ErrSuperseded))
		_ = older.Release(ctx) // the work has stopped
	}()
	newer, err := second.Mutex("deploy", lease.Supersede(), lease.Grace(time.Second)).Lock(ctx)
	fmt.Println("a greater token:", newer.Token() > older.Token(), err)
	fmt.Println(newer.Release(ctx))
	// Output:
	// superseded: true
	// a greater token: true <nil>
	// <nil>
}

// A safety net under a renewed lease, for a release that is forgotten.
func ExampleMaxHold() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := client.Mutex("import", lease.MaxHold(time.Second)).Lock(ctx)
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
		nil,                                  // 30 s, renewed every 10 s until it is released
		{lease.Renewed(time.Minute)},         // renewed every 20 s
		{lease.Fixed(10 * time.Second)},      // over after 10 s
		{holdfast.Renewed(10 * time.Second)}, // the root package has the same options
	} {
		l, err := client.Mutex("import", options...).Lock(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("held:", time.Until(l.Deadline()) > 0, l.Release(ctx))
	}
	// Output:
	// held: true <nil>
	// held: true <nil>
	// held: true <nil>
	// held: true <nil>
}

// Code that locks takes a Locker, and does not care which kind of lock that is. Tests give it one of
// holdfasttest's.
func ExampleLocker() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()

	reserve := func(lock lease.Locker) error {
		l, err := lock.Lock(ctx)
		if err != nil {
			return err
		}
		defer l.Release(ctx)
		fmt.Println("reserved under", l.Name())
		return nil
	}
	fmt.Println(reserve(client.Mutex("bolt")))
	fmt.Println(reserve(client.FairMutex("nut")))
	fmt.Println(reserve(client.RWMutex("washer").WLocker()))
	// Output:
	// reserved under bolt
	// <nil>
	// reserved under nut
	// <nil>
	// reserved under washer
	// <nil>
}

// Work that notices the loss of its lock.
func ExampleLease_Context() {
	client, operator, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := client.Mutex("import", lease.Renewed(3*time.Second)).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)
	held := l.Context(ctx)
	fmt.Println(operator.Mutex("import").ForceRelease(ctx))
	<-held.Done() // with the next renewal
	fmt.Println("lost:", errors.Is(context.Cause(held), lease.ErrLost))
	// Output:
	// true <nil>
	// lost: true
}

// A release says whether the lock lasted to the end.
func ExampleLease_Release() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := client.Mutex("import").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.Release(ctx))
	fmt.Println("twice:", errors.Is(l.Release(ctx), lease.ErrReleased))
	// Output:
	// <nil>
	// twice: true
}

// The id of a hold may be printed and read again: by it another process attaches to a hold.
func ExampleParseOwner() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := client.Mutex("import").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)
	owner, err := lease.ParseOwner(l.Owner().String())
	fmt.Println("the same:", owner == l.Owner(), err)
	// Output: the same: true <nil>
}

// Who holds the lock, and for how long at most.
func ExampleBusyError() {
	client, other, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := other.Mutex("import").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)
	_, err = client.Mutex("import").TryLock(ctx)
	var busy *lease.BusyError
	if errors.As(err, &busy) {
		fmt.Println("its holder:", busy.Holder == l.Owner())
	}
	// Output: its holder: true
}

// An Owner's String is a secret, by which anybody can take the hold over. Its Short may be logged: it begins with
// the id of the Client.
func ExampleOwner_Short() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := client.Mutex("import").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)
	fmt.Println(strings.HasPrefix(l.Owner().Short(), client.ID()), l.Owner().IsZero())
	// Output: true false
}
