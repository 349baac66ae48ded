package fairlock_test

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/test/clienttest"
)

// newClients stands for the Clients that two of your processes have.
var newClients = clienttest.Embedded

// A Ticket has its owner before it waits, so that somebody else can show how many are ahead of it.
func ExampleMutex_Ticket() {
	here, there, done := newClients()
	defer done()
	ctx := context.Background()
	serving, err := here.FairMutex("desk").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	ticket := there.FairMutex("desk").Ticket()
	served := make(chan error)
	go func() {
		l, err := ticket.Lock(ctx) // once
		if err == nil {
			err = l.Release(ctx)
		}
		served <- err
	}()
	for {
		ahead, waits, err := ticket.Position(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		if waits {
			fmt.Println("in the queue, ahead of it:", ahead)
			break
		}
	}
	fmt.Println(serving.Release(ctx), <-served)
	// Output:
	// in the queue, ahead of it: 0
	// <nil> <nil>
}

// How many wait, and who is next.
func ExampleMutex_QueueLength() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()

	desk := client.FairMutex("desk")
	waiting, err := desk.QueueLength(ctx)
	fmt.Println(waiting, err)
	next, err := desk.Waiters(ctx)
	fmt.Println(len(next), err)
	// Output:
	// 0 <nil>
	// 0 <nil>
}
