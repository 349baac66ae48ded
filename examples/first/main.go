// First is the program of docs/getting-started.md: any number of processes want one lock, and one of them has it.
// Unlike the other examples it needs a Redis, at port 6400.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

func main() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6400"})
	defer rdb.Close()
	client := holdfast.New(rdb) // one for each Redis; no I/O
	defer client.Close()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	lock := client.Mutex("report", holdfast.Renewed(3*time.Second))
	if err := report(ctx, lock, time.Minute); err != nil {
		log.Print(err)
	}
}

// report writes the report. However many processes call it, one at a time does.
func report(ctx context.Context, lock holdfast.Locker, takes time.Duration) error {
	fmt.Println("waiting")
	l, err := lock.Lock(ctx) // ctx bounds the wait
	if err != nil {
		return err
	}
	defer l.Release(ctx) // right even when ctx is already cancelled

	fmt.Println("holding, token", l.Token())
	held := l.Context(ctx) // cancelled if the lock is lost, and when ctx is
	select {
	case <-time.After(takes): // the work
		fmt.Println("done")
		return nil
	case <-held.Done():
		return context.Cause(held)
	}
}
