package once_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/once"
)

// newClients stands for the Clients that two of your processes have.
var newClients = clienttest.Embedded

// An idempotency key: the same request, sent again, is answered with the first receipt.
func ExampleValue() {
	client, _, done := newClients()
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
	client, _, done := newClients()
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
	client, _, done := newClients()
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
	client, _, done := newClients()
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

// Two processes want one result. One of them works, and gives its token to the resource, which can then
// refuse a worker that was overtaken. The other one waits, and gets the same result.
func ExampleToken() {
	east, west, done := newClients()
	defer done()
	ctx := context.Background()

	results := make(chan int64, 2)
	for _, client := range []*holdfast.Client{east, west} {
		go func() {
			token, err := once.Value(ctx, client.Once("report"), "2026-11-22", func(ctx context.Context) (int64, error) {
				fmt.Println("one works, with a token:", once.Token(ctx) > 0)
				return once.Token(ctx), nil
			})
			if err != nil {
				fmt.Println(err)
			}
			results <- token
		}()
	}
	first, second := <-results, <-results
	fmt.Println(first == second)
	// Output:
	// one works, with a token: true
	// true
}

// sealed is a Codec that keeps those who can read Redis from reading results: here only for show.
type sealed struct{}

func (sealed) Encode(result any) ([]byte, error) {
	data, err := once.JSON.Encode(result)
	slices.Reverse(data) // encrypt here
	return data, err
}

func (sealed) Decode(data []byte, result any) error {
	data = slices.Clone(data)
	slices.Reverse(data)
	return once.JSON.Decode(data, result)
}

// Results that are secret are encrypted before they are stored in Redis.
func ExampleUseCodec() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()

	keys := client.Once("key", once.UseCodec(sealed{}))
	for range 2 {
		key, err := once.Value(ctx, keys, "user 7", func(context.Context) (string, error) { return "s3cret", nil })
		fmt.Println(key, err)
	}
	// Output:
	// s3cret <nil>
	// s3cret <nil>
}

// Two requests with one key must be the same request.
func ExampleFingerprint() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	pay := func(body string) error {
		return once.Do(ctx, client.Once("charge", once.Fingerprint([]byte(body))), "key-1", func(context.Context) error {
			fmt.Println("charged:", body)
			return nil
		})
	}
	fmt.Println(pay("ten apples"))
	fmt.Println("refused:", errors.Is(pay("ten pears"), holdfast.ErrMismatch))
	// Output:
	// charged: ten apples
	// <nil>
	// refused: true
}

// A backend that fails is left alone for a while.
func ExampleKeepErrors() {
	client, _, done := newClients()
	defer done()
	ctx := context.Background()
	prices := client.Once("price", once.KeepErrors(time.Minute))
	for range 2 {
		_, err := once.Value(ctx, prices, "apples", func(context.Context) (int, error) {
			fmt.Println("asked")
			return 0, errors.New("no answer")
		})
		fmt.Println("the kept error:", errors.Is(err, holdfast.ErrWorkFailed))
	}
	// Output:
	// asked
	// the kept error: false
	// the kept error: true
}
