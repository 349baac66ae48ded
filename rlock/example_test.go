package rlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
)

// newClients stands for the Clients that two of your processes have.
var newClients = clienttest.Embedded

// The context of a lease re-enters the lock: whoever gets it is the same holder.
func ExampleMutex_Lock() {
	client, _, done := newClients()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // bounds the wait
	defer cancel()
	account := client.Mutex("account:7")

	outer, err := account.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer outer.Release(ctx)
	inner, err := account.Lock(outer.Context(ctx))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("leases on it:", outer.HoldCount(), "one token:", inner.Token() == outer.Token())
	fmt.Println(inner.Release(ctx)) // still held: outer lasts
	fmt.Println(account.Locked(ctx))
	// Output:
	// leases on it: 2 one token: true
	// <nil>
	// true <nil>
}

// Any process can ask who holds a lock, and for how long it stays held if nobody renews it.
func ExampleMutex_Holder() {
	client, operator, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := client.Mutex("orders:42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)

	orders := operator.Mutex("orders:42")
	holder, err := orders.Holder(ctx)
	fmt.Println("the holder:", holder == l.Owner(), err)
	left, err := orders.Remaining(ctx)
	fmt.Println("up to 30 s left:", left > 29*time.Second && left <= 30*time.Second, err)
	// Output:
	// the holder: true <nil>
	// up to 30 s left: true <nil>
}

// An operator takes a lock from its holder, which finds out at its next renewal.
func ExampleMutex_ForceRelease() {
	client, operator, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := client.Mutex("orders:42", holdfast.Renewed(3*time.Second)).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(operator.Mutex("orders:42").ForceRelease(ctx))
	<-l.Done()
	fmt.Println("lost:", l.Err() != nil)
	// Output:
	// true <nil>
	// lost: true
}

// Sixteen locks for any number of things: two things exclude each other only if they fall on one stripe.
func ExampleStriped_For() {
	client, other, done := newClients()
	defer done()

	stock := client.Striped("stock", 16)
	err := holdfast.Do(context.Background(), stock.For("bolt"), func(ctx context.Context) error {
		fmt.Println("counting bolts under one of", stock.Len(), "locks")
		return nil
	})
	fmt.Println(err)
	fmt.Println("the same in every process:", stock.For("bolt").Name() == other.Striped("stock", 16).For("bolt").Name())
	// Output:
	// counting bolts under one of 16 locks
	// <nil>
	// the same in every process: true
}

// A program's own rule for stripes, which a Java program may share.
func ExampleStriped_At() {
	client, _, done := newClients()
	defer done()

	const customer = 42
	fmt.Println(client.Striped("customers", 16).At(customer % 16).Name())
	// Output: customers:10
}

// A caller that need not wait does something else.
func ExampleMutex_TryLock() {
	client, other, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := other.Mutex("nightly").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)

	_, err = client.Mutex("nightly").TryLock(ctx)
	fmt.Println("another does it:", errors.Is(err, holdfast.ErrBusy))
	// Output: another does it: true
}

// A hold goes from one process to another, and is held all the while.
func ExampleMutex_Attach() {
	here, there, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := here.Mutex("migration").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	owner, err := l.Detach(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	taken, err := there.Mutex("migration").Attach(ctx, owner)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("one token:", taken.Token() == l.Token())
	fmt.Println(taken.Release(ctx))
	// Output:
	// one token: true
	// <nil>
}

// A stripe is a Mutex, with the name of the whole and its number.
func ExampleStripe() {
	client, other, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := client.Striped("stock", 4).At(2).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)
	fmt.Println(l.Name())
	fmt.Println(other.Mutex("stock:2").Locked(ctx))
	// Output:
	// stock:2
	// true <nil>
}
