// Longhold is an alarm for locks that are held for too long. One job forgets its lock, another
// holds its lock for a moment, and a third, which stands for a Java thread on Redisson, hangs.
// A monitor reports who holds which lock, and since when. The operator takes a closer look, and
// releases the forgotten lock by force.
//
//	go run ./examples/longhold
//	REDIS_URL=redis://localhost:6379 go run ./examples/longhold
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
)

func main() { embedded.Main(run) }

func run(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	client := holdfast.New(rdb)
	defer client.Close()
	prefix := "job:" + uuid.NewString()[:8] + ":"
	if err := startJobs(ctx, client, rdb, prefix); err != nil {
		return err
	}
	defer rdb.Del(ctx, prefix+"hanging")

	// Run the alarm until it has rung for both locks.
	watch, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	rung := make(map[string]bool)
	err := client.Monitor(watch, holdfast.MonitorOptions{
		Pattern:   prefix + "*",
		Threshold: 300 * time.Millisecond,
		Every:     100 * time.Millisecond,
		OnHeld: func(h holdfast.HeldLong) {
			name := strings.TrimPrefix(h.Name, prefix)
			if rung[name] {
				return // one alarm for each lock is enough here
			}
			rung[name] = true
			counting := "since it was granted"
			if !h.AgeKnown {
				counting = "since it was first seen"
			}
			fmt.Fprintf(out, "alarm: %s is held by %v for %v, %s\n",
				name, h.Holder, h.Age.Round(100*time.Millisecond), counting)
			if len(rung) == 2 {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) {
		return err
	}
	return open(ctx, client, prefix, out)
}

// startJobs leaves one lock forgotten and another lock hanging. It releases a third lock in time.
func startJobs(ctx context.Context, client *holdfast.Client, rdb *redis.Client, prefix string) error {
	if _, err := client.Mutex(prefix + "forgotten").Lock(ctx); err != nil {
		return err
	}
	java := uuid.NewString() + ":61" // a Redisson client and its thread
	if err := rdb.HSet(ctx, prefix+"hanging", java, 1).Err(); err != nil {
		return err
	}
	if err := rdb.PExpire(ctx, prefix+"hanging", 30*time.Second).Err(); err != nil {
		return err
	}
	return holdfast.Do(ctx, client.Mutex(prefix+"quick"), func(context.Context) error {
		time.Sleep(50 * time.Millisecond)
		return nil
	})
}

// open shows what is held, and releases the forgotten lock by force.
func open(ctx context.Context, client *holdfast.Client, prefix string, out io.Writer) error {
	for i, err := range client.InspectAll(ctx, prefix+"*") {
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s, held by %v\n", strings.TrimPrefix(i.Name, prefix), i.Kind, i.Holders)
	}
	if _, err := client.Mutex(prefix + "forgotten").ForceRelease(ctx); err != nil {
		return err
	}
	i, err := client.Inspect(ctx, prefix+"forgotten")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "forgotten is %s again\n", i.Kind)
	return nil
}
