// Once has three replicas of a service that charges cards. A client sends one order over and over,
// as impatient clients do, to whichever replica it reaches, and gives up on the first of these
// requests. The card is charged once, and each request that is answered is answered with the same
// receipt. The same key with another order is refused.
//
//	go run ./examples/once
//	REDIS_URL=redis://localhost:6379 go run ./examples/once
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
	"github.com/holdfast-go/holdfast/once"
)

func main() { embedded.Main(run) }

// Receipt is what the bank answers.
type Receipt struct {
	Number int
	Order  string
}

// bank stands for a payment service. It refuses a charge whose token is lower than one that it has
// seen for that key.
type bank struct {
	mu      sync.Mutex
	charges []Receipt
	token   int64
}

func (b *bank) charge(ctx context.Context, order string, token int64) (Receipt, error) {
	select {
	case <-time.After(50 * time.Millisecond): // the way to the bank
	case <-ctx.Done():
		return Receipt{}, context.Cause(ctx)
	}
	if ctx.Err() != nil {
		return Receipt{}, context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if token < b.token {
		return Receipt{}, errors.New("a later charge has come first")
	}
	b.token = token
	b.charges = append(b.charges, Receipt{len(b.charges) + 1, order})
	return b.charges[len(b.charges)-1], nil
}

// replica is one process of the service.
type replica struct {
	client *holdfast.Client
	bank   *bank
}

// pay handles one request.
func (r replica) pay(ctx context.Context, key, order string) (Receipt, error) {
	charges := r.client.Once("charge", once.Keep(time.Minute), once.Fingerprint([]byte(order)))
	return once.Value(ctx, charges, key, func(ctx context.Context) (Receipt, error) {
		return r.bank.charge(ctx, order, once.Token(ctx))
	})
}

func run(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	b := new(bank)
	var replicas []replica
	for range 3 {
		client := holdfast.New(rdb) // each replica is a process of its own
		defer client.Close()
		replicas = append(replicas, replica{client, b})
	}
	key := uuid.NewString() // the client sends it with each of its requests

	// The client gives up on its first request before the bank has answered: nothing is charged.
	impatient, leave := context.WithTimeout(ctx, 20*time.Millisecond)
	defer leave()
	if _, err := replicas[0].pay(impatient, key, "ten apples"); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the first request: %w", err)
	}
	fmt.Fprintln(out, "the first request was given up")

	// It sends the order once more, and many times more.
	const requests = 300
	results := make(chan error, requests)
	for i := range requests {
		go func() {
			receipt, err := replicas[i%3].pay(ctx, key, "ten apples")
			if err == nil && receipt != (Receipt{1, "ten apples"}) {
				err = fmt.Errorf("receipt %+v", receipt)
			}
			results <- err
		}()
	}
	for range requests {
		if err := <-results; err != nil {
			return err
		}
	}
	if len(b.charges) != 1 {
		return fmt.Errorf("charged %d times", len(b.charges))
	}
	fmt.Fprintf(out, "%d requests have the receipt of one charge\n", requests)

	_, err := replicas[1].pay(ctx, key, "ten pears")
	if !errors.Is(err, holdfast.ErrMismatch) {
		return fmt.Errorf("another order under the same key: %w", err)
	}
	fmt.Fprintln(out, "another order under the same key is refused")
	return nil
}
