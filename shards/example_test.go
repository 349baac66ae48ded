package shards_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/shards"
)

// newClients stands for the Clients that two of your processes have.
var newClients = clienttest.Embedded

// A process consumes the shards of which it is the owner, until it is asked for them.
func ExampleShards_Run() {
	client, _, done := newClients()
	defer done()
	ctx, cancel := context.WithCancel(context.Background())

	var consumed atomic.Int64
	consume := func(ctx context.Context, shard int, token int64) error {
		if consumed.Add(1) == 64 {
			cancel() // of a program, when it shuts down
		}
		<-ctx.Done()
		return nil
	}

	orders := client.Shards("orders", 64, shards.Identity("pod-1"), shards.Value("10.0.0.1:8080"))
	err := orders.Run(ctx, func(ctx context.Context, s *shards.Shard) error {
		return consume(ctx, s.Number(), s.Token()) // until ctx ends
	})
	fmt.Println(consumed.Load(), "shards;", errors.Is(err, context.Canceled))
	// Output: 64 shards; true
}

// A request is routed to the process that has the shard of its key.
func ExampleShards_Owner() {
	member, client, done := newClients()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	running := make(chan struct{})
	go func() {
		defer close(running)
		_ = member.Shards("orders", 64, shards.Value("10.0.0.1:8080")).Run(ctx, func(ctx context.Context, _ *shards.Shard) error {
			<-ctx.Done()
			return nil
		})
	}()

	orders := client.Shards("orders", 64)
	for range orders.Watch(ctx) { // a program would keep what it sees
		if info, err := orders.Owner(ctx, "order 7"); err == nil && info.Owned() {
			fmt.Println("shard", info.Shard, "is at", info.Value)
			break
		}
	}
	cancel()
	<-running
	// Output: shard 6 is at 10.0.0.1:8080
}

// The work gets its shard: the number says what to do, and the token lets a store refuse a member that was overtaken.
func ExampleShard_Token() {
	client, _, done := newClients()
	defer done()
	ctx, cancel := context.WithCancel(context.Background())

	_ = client.Shards("orders", 1).Run(ctx, func(ctx context.Context, s *shards.Shard) error {
		fmt.Println("shard", s.Number(), s.Token() > 0)
		cancel() // of a program, when it shuts down
		<-ctx.Done()
		return nil
	})
	// Output: shard 0 true
}

// An Info says whether somebody has the shard.
func ExampleInfo_Owned() {
	client, _, done := newClients()
	defer done()
	info, err := client.Shards("orders", 64).Owner(context.Background(), "order 7")
	fmt.Println(info.Shard, info.Owned(), err)
	// Output: 6 false <nil>
}

// Element i of each slice from Watch says who has shard i.
func ExampleShards_Watch() {
	_, client, done := newClients()
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	orders := client.Shards("orders", 64)
	for all := range orders.Watch(ctx) {
		to := all[orders.Of("order 7")]
		fmt.Println(len(all), to.Owned())
		break
	}
	// Output: 64 false
}
