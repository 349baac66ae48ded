package quorum_test

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
)

// servers returns Clients of n independent servers.
func servers(n int) (clients []*holdfast.Client, done func()) {
	var all []func()
	for range n {
		client, _, closeServer := clienttest.Embedded()
		clients, all = append(clients, client), append(all, closeServer)
	}
	return clients, func() {
		for _, closeServer := range all {
			closeServer()
		}
	}
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

// A quorum has one token: the greatest of its servers'.
func ExampleLease_Token() {
	clients, done := servers(3)
	defer done()
	ctx := context.Background()
	q := holdfast.NewQuorum("orders:42", clients)
	var last int64
	for range 3 {
		l, err := q.Lock(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("greater:", l.Token() > last, l.Release(ctx))
		last = l.Token()
	}
	// Output:
	// greater: true <nil>
	// greater: true <nil>
	// greater: true <nil>
}
