package leader_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/leader"
)

// newClients stands for the Clients that two of your processes have.
var newClients = clienttest.Embedded

// until waits until a condition holds, as only an example must.
func until(holds func() bool) {
	for !holds() {
		time.Sleep(time.Millisecond)
	}
}

// A leader that is cut off from Redis ends its work ten seconds before another can lead.
func ExampleGrace() {
	client, _, done := newClients()
	defer done()
	election := client.Leader("scheduler", leader.Lease(30*time.Second), leader.Grace(10*time.Second))
	err := election.Run(context.Background(), func(ctx context.Context, term *leader.Term) error {
		left := time.Until(term.Deadline())
		fmt.Println("if it is not renewed, the term ends after", left.Round(time.Second))
		return nil
	})
	fmt.Println(err)
	// Output:
	// if it is not renewed, the term ends after 20s
	// <nil>
}

// Two processes campaign. The first leads, and resigns for good when its work is done; then the other leads.
func ExampleElection_Run() {
	east, west, done := newClients()
	defer done()
	ctx := context.Background()

	leads, finish := make(chan struct{}), make(chan struct{})
	resigned := make(chan error)
	go func() {
		resigned <- east.Leader("scheduler").Run(ctx, func(ctx context.Context, term *leader.Term) error {
			fmt.Println("east leads")
			close(leads)
			select {
			case <-finish:
				return nil // resigns for good
			case <-ctx.Done(): // the term is over
				return context.Cause(ctx)
			}
		})
	}()
	<-leads
	time.AfterFunc(10*time.Millisecond, func() { close(finish) })
	err := west.Leader("scheduler").Run(ctx, func(context.Context, *leader.Term) error {
		fmt.Println("west leads")
		return nil
	})
	fmt.Println(<-resigned, err)
	// Output:
	// east leads
	// west leads
	// <nil> <nil>
}

// At a shutdown, Run returns an error that matches that of its context. It is no failure.
func ExampleElection_Run_shutdown() {
	east, _, done := newClients()
	defer done()
	ctx, stop := context.WithCancel(context.Background()) // in a program: signal.NotifyContext
	defer stop()

	err := east.Leader("scheduler").Run(ctx, func(ctx context.Context, term *leader.Term) error {
		fmt.Println("east leads")
		stop() // as SIGTERM does
		<-ctx.Done()
		return nil
	})
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	fmt.Println(err)
	// Output:
	// east leads
	// <nil>
}

// Any process may ask who leads, without being a candidate.
func ExampleElection_Leader() {
	east, west, done := newClients()
	defer done()
	ctx := context.Background()

	_, err := west.Leader("scheduler").Leader(ctx)
	fmt.Println(errors.Is(err, holdfast.ErrNoLeader))
	err = east.Leader("scheduler", leader.Identity("east"), leader.Value("10.1.2.3:8080")).Run(ctx, func(ctx context.Context, term *leader.Term) error {
		info, err := west.Leader("scheduler").Leader(ctx)
		fmt.Println(info.Identity, info.Value, info.Token == term.Token(), err)
		return nil
	})
	fmt.Println(err)
	// Output:
	// true
	// east 10.1.2.3:8080 true <nil>
	// <nil>
}

// Another process follows who leads.
func ExampleElection_Observe() {
	east, west, done := newClients()
	defer done()
	ctx := context.Background()

	finish := make(chan struct{})
	resigned := make(chan error, 1)
	for info := range west.Leader("scheduler").Observe(ctx) {
		if info.Leads() {
			fmt.Println(info.Identity, "leads")
			close(finish)
			continue
		}
		fmt.Println("nobody leads")
		select {
		case <-finish: // that was the end
			fmt.Println(<-resigned)
			return
		default:
		}
		go func() {
			resigned <- east.Leader("scheduler", leader.Identity("east")).Run(ctx, func(context.Context, *leader.Term) error {
				<-finish
				return nil
			})
		}()
	}
	// Output:
	// nobody leads
	// east leads
	// nobody leads
	// <nil>
}

// Before a deployment the leader, in whichever process it is, is asked to let another lead. Its work may
// finish.
func ExampleElection_RequestResign() {
	east, west, done := newClients()
	defer done()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	terms := make(chan string)
	ended := make(chan error, 2)
	campaign := func(client *holdfast.Client, name string) {
		ended <- client.Leader("scheduler", leader.Identity(name)).Run(ctx, func(ctx context.Context, _ *leader.Term) error {
			terms <- name
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), holdfast.ErrResigned) {
				fmt.Println(name, "resigns")
			}
			return nil
		})
	}
	go campaign(east, "east")
	fmt.Println(<-terms, "leads")
	go campaign(west, "west")
	election := west.Leader("scheduler")
	until(func() bool {
		waiting, err := election.Candidates(ctx)
		return err == nil && len(waiting) == 1 && waiting[0].Identity == "west"
	})
	if err := election.RequestResign(ctx); err != nil { // it does not wait for east to resign
		fmt.Println(err)
	}
	fmt.Println(<-terms, "leads")
	stop()
	<-ended
	<-ended
	// Output:
	// east leads
	// east resigns
	// west leads
}

// The work itself ends its term, and Run campaigns again. Here a term also ends after an hour, so that the same
// process does not always lead.
func ExampleTerm_Resign() {
	client, _, done := newClients()
	defer done()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	terms := 0
	err := client.Leader("scheduler", leader.MaxTerm(time.Hour)).Run(ctx, func(ctx context.Context, term *leader.Term) error {
		if terms++; terms == 2 {
			return nil
		}
		term.Resign()
		<-ctx.Done()
		fmt.Println(errors.Is(context.Cause(ctx), holdfast.ErrResigned))
		return nil
	})
	fmt.Println(terms, err)
	// Output:
	// true
	// 2 <nil>
}

// The work promises to show a sign of life within ten milliseconds, and hangs. So its term ends, and another
// may lead when it has returned.
func ExampleTerm_Alive() {
	client, _, done := newClients()
	defer done()
	ctx, stop := context.WithCancel(context.Background())

	err := client.Leader("scheduler").Run(ctx, func(ctx context.Context, term *leader.Term) error {
		term.Alive(10 * time.Millisecond)
		<-ctx.Done() // hangs
		fmt.Println(errors.Is(context.Cause(ctx), holdfast.ErrResigned))
		stop()
		return nil
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// true
	// true
}

// A readiness probe: the process that leads gets the requests.
func ExampleElection_Handler() {
	client, _, done := newClients()
	defer done()

	election := client.Leader("scheduler", leader.Identity("east"))
	probe := func() {
		answer := httptest.NewRecorder()
		election.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/readyz", nil))
		fmt.Println(answer.Code, election.IsLeader())
	}
	probe()
	err := election.Run(context.Background(), func(context.Context, *leader.Term) error {
		probe()
		return nil
	})
	fmt.Println(err)
	// Output:
	// 503 false
	// 200 true
	// <nil>
}

// gocron runs its jobs only in the leader's process, with
//
//	gocron.NewScheduler(gocron.WithDistributedElector(election.Elector()))
func ExampleElection_Elector() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()

	election := client.Leader("scheduler")
	elector := election.Elector()
	fmt.Println(errors.Is(elector.IsLeader(ctx), holdfast.ErrNoLeader))
	err := election.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
		fmt.Println(elector.IsLeader(ctx))
		return nil
	})
	fmt.Println(err)
	// Output:
	// true
	// <nil>
	// <nil>
}

// Who waits to lead, in the order in which they would.
func ExampleElection_Candidates() {
	east, west, done := newClients()
	defer done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var ended sync.WaitGroup
	defer ended.Wait()
	defer cancel()

	campaign := func(c *holdfast.Client, options ...leader.Option) *leader.Election {
		e := c.Leader("scheduler", options...)
		ended.Go(func() {
			_ = e.Run(ctx, func(ctx context.Context, _ *leader.Term) error {
				<-ctx.Done()
				return context.Cause(ctx)
			})
		})
		return e
	}
	first := campaign(east, leader.Identity("east"))
	until(first.IsLeader)
	second := campaign(west, leader.Identity("west"), leader.Priority(5))
	until(func() bool {
		waiting, err := second.Candidates(ctx)
		return err == nil && len(waiting) == 1
	})
	waiting, err := first.Candidates(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(waiting[0].Identity, "waits, with priority", waiting[0].Priority)
	// Output: west waits, with priority 5
}

// How a process that is no candidate finds out whether anybody leads.
func ExampleInfo_Leads() {
	client, _, done := newClients()
	defer done()

	info, err := client.Leader("scheduler").Leader(context.Background())
	fmt.Println(info.Leads(), errors.Is(err, holdfast.ErrNoLeader))
	// Output: false true
}

// What gocron asks before each job.
func ExampleElector_IsLeader() {
	client, _, done := newClients()
	defer done()

	elector := client.Leader("scheduler").Elector()
	fmt.Println("not the leader:", elector.IsLeader(context.Background()) != nil)
	// Output: not the leader: true
}
