// Tickets is a desk with one clerk, and customers at two entrances, which stand for two processes.
// Customers come at any time. The clerk serves them in the order in which they came, whichever
// entrance they took. Each customer sees how many are before it, and one customer leaves.
//
//	go run ./examples/tickets
//	REDIS_URL=redis://localhost:6379 go run ./examples/tickets
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
	"github.com/holdfast-go/holdfast/fairlock"
)

func main() { embedded.Main(run) }

const (
	customers = 8
	impatient = 3 // leaves before its turn
)

func run(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	name := "desk:" + uuid.NewString()
	east, west := holdfast.New(rdb), holdfast.New(rdb)
	defer east.Close()
	defer west.Close()

	// The desk opens when all customers have come.
	opening, err := east.FairMutex(name).Lock(ctx)
	if err != nil {
		return err
	}
	d := &desk{out: out}
	short, leave := context.WithCancel(ctx)
	defer leave()
	var all sync.WaitGroup
	for i := range customers {
		entrance := []*holdfast.Client{east, west}[i%2]
		ticket := entrance.FairMutex(name).Ticket()
		patience := ctx
		if i == impatient {
			patience = short
		}
		all.Go(func() { d.customer(patience, i, ticket) })
		if err := arrived(ctx, ticket); err != nil {
			return err
		}
		ahead, _, err := ticket.Position(ctx)
		if err != nil {
			return err
		}
		d.say("customer %d comes, %d before it", i, ahead)
	}
	leave()
	n, err := shorter(ctx, east.FairMutex(name))
	if err != nil {
		return err
	}
	d.say("the desk opens, %d wait", n)
	if err := opening.Release(ctx); err != nil {
		return err
	}
	all.Wait()
	return d.close()
}

// arrived waits until the ticket has a place in the queue.
func arrived(ctx context.Context, ticket *fairlock.Ticket) error {
	for {
		_, waits, err := ticket.Position(ctx)
		if waits || err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// shorter waits until a customer has left the queue, and returns how many customers are in it.
func shorter(ctx context.Context, m *fairlock.Mutex) (n int, err error) {
	for n = customers; n == customers && err == nil; time.Sleep(time.Millisecond) {
		n, err = m.QueueLength(ctx)
	}
	return n, err
}

// desk records the order in which customers were served.
type desk struct {
	mu     sync.Mutex
	out    io.Writer
	served []int
	failed error
}

func (d *desk) customer(ctx context.Context, i int, ticket *fairlock.Ticket) {
	turn, err := ticket.Lock(ctx)
	if i == impatient && errors.Is(err, context.Canceled) {
		d.say("customer %d leaves", i)
		return
	}
	if err != nil {
		d.fail(err)
		return
	}
	d.say("customer %d is served", i)
	d.mu.Lock()
	d.served = append(d.served, i)
	d.mu.Unlock()
	time.Sleep(20 * time.Millisecond)
	if err := turn.Release(ctx); err != nil {
		d.fail(err)
	}
}

func (d *desk) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintf(d.out, format+"\n", args...)
}

func (d *desk) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = errors.Join(d.failed, err)
}

// close returns an error unless everything went as it should.
func (d *desk) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		return d.failed
	}
	if !slices.IsSorted(d.served) || len(d.served) != customers-1 {
		return fmt.Errorf("served in the order %v", d.served)
	}
	fmt.Fprintf(d.out, "%d customers served in the order in which they came\n", len(d.served))
	return nil
}
