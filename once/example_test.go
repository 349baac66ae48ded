package once_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/once"
)

// newClient stands for the Client that your program has.
func newClient() (client *holdfast.Client, done func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	server.ClockTTL(true)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	client = holdfast.New(rdb)
	return client, func() {
		_ = client.Close()
		_ = rdb.Close()
		server.Close()
	}
}

// An idempotency key: the same request, sent again, is answered with the first receipt.
func ExampleValue() {
	client, done := newClient()
	defer done()
	ctx := context.Background()

	type Receipt struct{ Amount, Number int }
	charged := 0
	pay := func(key, body string, amount int) (Receipt, error) {
		charges := client.Once("charge", once.Keep(24*time.Hour), once.Fingerprint([]byte(body)))
		return once.Value(ctx, charges, key, func(ctx context.Context) (Receipt, error) {
			charged++ // give once.Token(ctx) to the bank, so that it can refuse what is overtaken
			return Receipt{amount, charged}, nil
		})
	}

	for range 3 {
		receipt, err := pay("key-1", "amount=10", 10)
		fmt.Println(receipt, err)
	}
	_, err := pay("key-1", "amount=99", 99)
	fmt.Println(errors.Is(err, holdfast.ErrMismatch), charged)
	// Output:
	// {10 1} <nil>
	// {10 1} <nil>
	// {10 1} <nil>
	// true 1
}

// The filling of a cache: the callers of all processes together ask the backend once a minute. If the
// backend fails, they do not try it one after the other: its error is kept for a second.
func ExampleValue_cache() {
	client, done := newClient()
	defer done()
	ctx := context.Background()

	prices := client.Once("price", once.Keep(time.Minute), once.KeepErrors(time.Second))
	asked := 0
	for range 3 {
		price, err := once.Value(ctx, prices, "apples", func(ctx context.Context) (int, error) {
			asked++
			return 42, nil
		})
		fmt.Println(price, err, asked)
	}
	// Output:
	// 42 <nil> 1
	// 42 <nil> 1
	// 42 <nil> 1
}

// Work without a result.
func ExampleDo() {
	client, done := newClient()
	defer done()
	ctx := context.Background()

	mails := client.Once("welcome mail", once.Keep(30*24*time.Hour), once.OnBusy(once.Fail))
	for range 2 {
		err := once.Do(ctx, mails, "user 7", func(ctx context.Context) error {
			fmt.Println("sent")
			return nil
		})
		switch {
		case errors.Is(err, holdfast.ErrBusy):
			fmt.Println("another is just sending it")
		case err != nil:
			fmt.Println(err)
		}
	}
	// Output:
	// sent
}

// A result that turned out to be wrong.
func ExampleOnce_Forget() {
	client, done := newClient()
	defer done()
	ctx := context.Background()

	prices := client.Once("price")
	price := 42
	get := func() {
		got, err := once.Value(ctx, prices, "apples", func(context.Context) (int, error) { return price, nil })
		fmt.Println(got, err)
	}
	get()
	price = 43
	get()
	if err := prices.Forget(ctx, "apples"); err != nil {
		fmt.Println(err)
	}
	get()
	// Output:
	// 42 <nil>
	// 42 <nil>
	// 43 <nil>
}
