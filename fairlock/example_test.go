package fairlock_test

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/fairlock"
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

// The lock goes to those who wait in the order in which they came.
func ExampleMutex_Lock() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	desk := client.FairMutex("desk")
	serving, err := desk.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	served := make(chan string, 3)
	for n, customer := range []string{"first", "second", "third"} {
		go func() {
			l, err := desk.Lock(ctx)
			if err != nil {
				fmt.Println(err)
				return
			}
			served <- customer
			_ = l.Release(ctx)
		}()
		for waiting := 0; waiting <= n; { // the next one comes when this one stands in the queue
			if waiting, err = desk.QueueLength(ctx); err != nil {
				fmt.Println(err)
				return
			}
		}
	}
	fmt.Println(serving.Release(ctx))
	fmt.Println(<-served, <-served, <-served)
	// Output:
	// <nil>
	// first second third
}

// Waiters in a hurry are placed as if they had come 10 s earlier for each step of their priority.
func ExamplePriority() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	desk, urgent := client.FairMutex("desk"), client.FairMutex("desk", fairlock.Priority(3))
	serving, err := desk.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	served := make(chan string, 2)
	serve := func(m *fairlock.Mutex, customer string) {
		l, err := m.Lock(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		served <- customer
		_ = l.Release(ctx)
	}
	go serve(desk, "a job of the night")
	for waiting := 0; waiting == 0; {
		waiting, _ = desk.QueueLength(ctx)
	}
	go serve(urgent, "a user who looks at the page")
	for waiting := 0; waiting < 2; {
		waiting, _ = desk.QueueLength(ctx)
	}
	fmt.Println(serving.Release(ctx))
	fmt.Println(<-served)
	fmt.Println(<-served)
	// Output:
	// <nil>
	// a user who looks at the page
	// a job of the night
}

// Who waits, the next one first: a Ticket knows its owner before it waits.
func ExampleTicket_Owner() {
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
		l, err := ticket.Lock(ctx)
		if err == nil {
			err = l.Release(ctx)
		}
		served <- err
	}()
	for {
		next, err := here.FairMutex("desk").Waiters(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		if len(next) == 1 {
			fmt.Println("it is the ticket's:", next[0] == ticket.Owner())
			break
		}
	}
	fmt.Println(serving.Release(ctx), <-served)
	// Output:
	// it is the ticket's: true
	// <nil> <nil>
}
