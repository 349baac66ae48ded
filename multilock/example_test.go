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

// servers returns Clients of n independent servers.
func servers(n int) (clients []*holdfast.Client, done func()) {
	var all []func()
	for range n {
		client, _, closeServer := newClients()
		clients, all = append(clients, client), append(all, closeServer)
	}
	return clients, func() {
		for _, closeServer := range all {
			closeServer()
		}
	}
}

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

// One lock on three servers, which is held while two of them vouch for it.
func ExampleQuorum_Lock() {
	clients, done := servers(3)
	defer done()
	ctx := context.Background()

	q := holdfast.NewQuorum("orders:42", clients)
	l, err := q.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("held by a majority:", len(l.Tokens()) >= 2, "one token:", l.Token() > 0)
	fmt.Println(l.Release(ctx))
	// Output:
	// held by a majority: true one token: true
	// <nil>
}
