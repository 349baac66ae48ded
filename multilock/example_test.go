package multilock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
)

// newClients stands for the Clients that two of your processes have.
var newClients = clienttest.Embedded

// A transfer needs both accounts. Two that name them in opposite orders do not wait for each other in a circle.
func ExampleMultiLock_Lock() {
	client, other, done := newClients()
	defer done()
	ctx := context.Background()

	both := holdfast.NewMultiLock(client.Mutex("account:7"), client.Mutex("account:8"))
	l, err := both.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("tokens:", len(l.Tokens()))
	back := holdfast.NewMultiLock(other.Mutex("account:8"), other.Mutex("account:7"))
	_, err = back.TryLock(ctx)
	fmt.Println("busy:", errors.Is(err, holdfast.ErrBusy))
	fmt.Println(l.Release(ctx))
	// Output:
	// tokens: 2
	// busy: true
	// <nil>
}

// All of them or none: if one is held, none stays taken.
func ExampleMultiLock_TryLock() {
	client, other, done := newClients()
	defer done()
	ctx := context.Background()
	held, err := other.Mutex("projector").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer held.Release(ctx)
	_, err = holdfast.NewMultiLock(client.Mutex("room"), client.Mutex("projector")).TryLock(ctx)
	fmt.Println("busy:", errors.Is(err, holdfast.ErrBusy))
	room, err := other.Mutex("room").Lock(ctx)
	fmt.Println("the room is free:", err == nil)
	fmt.Println(room.Release(ctx))
	// Output:
	// busy: true
	// the room is free: true
	// <nil>
}

// Each resource compares the token of its own lock.
func ExampleLease_Tokens() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	l, err := holdfast.NewMultiLock(client.Mutex("account:8"), client.Mutex("account:7")).Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Release(ctx)
	tokens := l.Tokens() // in the order in which the locks were given
	fmt.Println("of account:8:", tokens[0] > 0, "of account:7:", tokens[1] > 0)
	// Output: of account:8: true of account:7: true
}
