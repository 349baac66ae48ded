// Each synchronizer, as a program makes it. Some of these programs are in the pages of docs too.

package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/leader"
	"github.com/holdfast-go/holdfast/limiter"
	"github.com/holdfast-go/holdfast/once"
	"github.com/holdfast-go/holdfast/shards"
	"github.com/holdfast-go/holdfast/slots"
)

// Customers at a desk are served in the order in which they came, in whichever processes they wait.
func ExampleClient_FairMutex() {
	client, _, done := clienttest.Embedded()
	defer done()

	err := holdfast.Do(context.Background(), client.FairMutex("desk"), func(context.Context) error {
		fmt.Println("next, please")
		return nil
	})
	fmt.Println(err)
	// Output:
	// next, please
	// <nil>
}

// Many read at once, and one writes alone.
func ExampleClient_RWMutex() {
	client, other, done := clienttest.Embedded()
	defer done()
	ctx := context.Background()

	reading, err := client.RWMutex("prices").RLock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reading.Release(ctx)
	_, err = other.RWMutex("prices").TryLock(ctx)
	fmt.Println("a writer waits for readers:", errors.Is(err, holdfast.ErrBusy))
	// Output: a writer waits for readers: true
}

// At most two uploads at a time. A process that dies gives its permits back with its lease.
func ExampleClient_PermitSemaphore() {
	client, _, done := clienttest.Embedded()
	defer done()
	ctx := context.Background()

	uploads := client.PermitSemaphore("uploads")
	if _, err := uploads.TrySetPermits(ctx, 2); err != nil {
		fmt.Println(err)
		return
	}
	err := holdfast.Do(ctx, uploads.Locker(1), func(ctx context.Context) error {
		free, err := uploads.Available(ctx)
		fmt.Println("uploading; free:", free)
		return err
	})
	fmt.Println(err)
	// Output:
	// uploading; free: 1
	// <nil>
}

// A number of permits that nobody owns.
func ExampleClient_Semaphore() {
	client, _, done := clienttest.Embedded()
	defer done()
	ctx := context.Background()

	slots := client.Semaphore("slots")
	if _, err := slots.TrySetPermits(ctx, 3); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(slots.Acquire(ctx, 2))
	fmt.Println(slots.Available(ctx))
	// Output:
	// <nil>
	// 1 <nil>
}

// All who wait go on when two shards are done.
func ExampleClient_Latch() {
	client, other, done := clienttest.Embedded()
	defer done()
	ctx := context.Background()

	if _, err := client.Latch("shards").TrySetCount(ctx, 2); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		fmt.Println(other.Latch("shards").CountDown(ctx))
	}
	fmt.Println(client.Latch("shards").Wait(ctx))
	// Output:
	// 1 <nil>
	// 0 <nil>
	// <nil>
}

// Eight workers go on to the next shard together.
func ExampleClient_Barrier() {
	client, _, done := clienttest.Embedded()
	defer done()
	ctx, shards := context.Background(), []string{"a", "b", "c"}
	work := func(string) {}

	reindex := func() error {
		phase := client.Barrier("reindex", 8)
		for _, shard := range shards {
			work(shard)
			if _, err := phase.Await(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			if err := reindex(); err != nil {
				fmt.Println(err)
			}
		})
	}
	workers.Wait()
	fmt.Println("all shards are done")
	// Output: all shards are done
}

// An API allows 100 calls a minute, to all processes together.
func ExampleClient_Limiter() {
	client, _, done := clienttest.Embedded()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	api := client.Limiter("stripe", limiter.Rate(100, time.Minute), limiter.Burst(20))
	for range 3 {
		if err := api.Wait(ctx, 1); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("three calls")
	// Output: three calls
}

// The shards of a topic are divided among the processes that consume it.
func ExampleClient_Shards() {
	client, _, done := clienttest.Embedded()
	defer done()
	ctx, cancel := context.WithCancel(context.Background())

	err := client.Shards("orders", 64).Run(ctx, func(ctx context.Context, s *shards.Shard) error {
		if s.Number() == 63 {
			cancel() // of a program, when it shuts down
		}
		<-ctx.Done() // consume(ctx, s.Number(), s.Token())
		return nil
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output: true
}

// An order is charged once, however often its request comes.
func ExampleClient_Once() {
	client, _, done := clienttest.Embedded()
	defer done()
	ctx, idempotencyKey, order, body := context.Background(), "key-1", "ten apples", []byte("ten apples")
	bank := new(exampleBank)

	for range 2 {
		charges := client.Once("charge", once.Keep(24*time.Hour), once.Fingerprint(body))
		receipt, err := once.Value(ctx, charges, idempotencyKey, func(ctx context.Context) (Receipt, error) {
			return bank.Charge(ctx, order, once.Token(ctx))
		})
		fmt.Println(receipt, err)
	}
	// Output:
	// {ten apples 1} <nil>
	// {ten apples 1} <nil>
}

// Work that goes on when its caller has left, for at most a minute.
func ExampleClient_Once_detached() {
	client, _, done := clienttest.Embedded()
	defer done()
	ctx, order := context.Background(), "ten apples"
	bank := new(exampleBank)

	work := func(ctx context.Context) (Receipt, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return bank.Charge(ctx, order, once.Token(ctx))
	}
	fmt.Println(once.Value(ctx, client.Once("charge"), "key-1", work))
	// Output: {ten apples 1} <nil>
}

// Receipt is what exampleBank answers.
type Receipt struct {
	Order  string
	Number int
}

// exampleBank stands for a payment service.
type exampleBank struct{ charges int }

func (b *exampleBank) Charge(_ context.Context, order string, _ int64) (Receipt, error) {
	b.charges++
	return Receipt{order, b.charges}, nil
}

// Each replica goes through the same schedule, and runs the jobs that it wins.
func ExampleClient_Tick_schedule() {
	client, _, done := clienttest.Embedded()
	defer done()
	ctx := context.Background()
	schedule := make(chan time.Time, 1)
	schedule <- time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	close(schedule)
	run := func(_ context.Context, at time.Time) { fmt.Println("the job of", at.Format(time.Kitchen)) }

	for at := range schedule { // the times of the schedule: the same on every replica
		won, err := client.Tick(ctx, "report", at, 3*time.Hour)
		if err == nil && won {
			run(ctx, at)
		}
	}
	// Output: the job of 10:00AM
}

// A process campaigns, and its scheduler runs while it leads.
func ExampleClient_Leader_run() {
	client, _, done := clienttest.Embedded()
	defer done()
	ctx := context.Background()
	schedule := func(_ context.Context, token int64) error {
		fmt.Println("scheduling with a token:", token > 0)
		return nil // which resigns for good
	}

	election := client.Leader("scheduler", leader.Identity("pod-7"), leader.Value("10.1.2.3:8080"))
	err := election.Run(ctx, func(ctx context.Context, term *leader.Term) error {
		return schedule(ctx, term.Token()) // until ctx ends
	})
	if errors.Is(err, context.Canceled) {
		err = nil // ctx was cancelled: a shutdown is no failure
	}
	fmt.Println(err)
	// Output:
	// scheduling with a token: true
	// <nil>
}

// Each process gets its own worker id: the lowest that is free.
func ExampleClient_Slots() {
	client, other, done := clienttest.Embedded()
	defer done()
	ctx := context.Background()

	for _, c := range []*holdfast.Client{client, other} {
		worker, err := c.Slots("worker-id", 1024, slots.Quarantine(time.Minute)).Acquire(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer worker.Release(ctx)
		fmt.Println("worker", worker.Number())
	}
	// Output:
	// worker 0
	// worker 1
}

// Locks for very many things, few of which are busy.
func ExampleClient_Striped() {
	client, _, done := clienttest.Embedded()
	defer done()

	stock := client.Striped("stock", 64)
	err := holdfast.Do(context.Background(), stock.For("bolt"), func(context.Context) error {
		fmt.Println("one bolt less")
		return nil
	})
	fmt.Println(err)
	// Output:
	// one bolt less
	// <nil>
}

// A room, a projector and a driver: all of them, or none.
func ExampleNewMultiLock() {
	client, _, done := clienttest.Embedded()
	defer done()

	all := holdfast.NewMultiLock(client.Mutex("room"), client.Mutex("projector"), client.Mutex("driver"))
	err := holdfast.Do(context.Background(), all, func(context.Context) error {
		fmt.Println("booked")
		return nil
	})
	fmt.Println(err)
	// Output:
	// booked
	// <nil>
}

// One lock on most of three independent servers.
func ExampleNewQuorum() {
	var clients []*holdfast.Client
	for range 3 { // stand for three servers that do not replicate each other
		client, _, done := clienttest.Embedded()
		defer done()
		clients = append(clients, client)
	}
	err := holdfast.Do(context.Background(), holdfast.NewQuorum("orders:42", clients), func(context.Context) error {
		fmt.Println("a majority vouches for it")
		return nil
	})
	fmt.Println(err)
	// Output:
	// a majority vouches for it
	// <nil>
}

// A quorum of another kind of lock: here the read sides of read/write locks.
func ExampleNewQuorumOf() {
	var clients []*holdfast.Client
	for range 3 { // stand for three servers that do not replicate each other
		client, _, done := clienttest.Embedded()
		defer done()
		clients = append(clients, client)
	}
	readers := holdfast.NewQuorumOf("prices", clients, 30*time.Second, func(c *holdfast.Client) holdfast.Locker {
		return c.RWMutex("prices").RLocker()
	})
	for range 2 {
		l, err := readers.Lock(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		defer l.Release(context.Background())
	}
	fmt.Println("two readers, each on a majority")
	// Output: two readers, each on a majority
}
