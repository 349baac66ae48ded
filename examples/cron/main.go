// Cron has three replicas of a service with the same schedule. At each tick the first replica to
// come sends the report. One replica stands still in the middle of it, for longer than its lease.
// Its tick is missed, and the next replica to run finds that out. When the first replica wakes, the
// fencing token makes the ledger refuse its late result.
//
//	go run ./examples/cron
//	REDIS_URL=redis://localhost:6379 go run ./examples/cron
package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
)

func main() { embedded.Main(run) }

const (
	every   = 250 * time.Millisecond // stands for a minute
	limit   = every * 4 / 5          // a report that takes longer is of no use
	reports = 6
	stuck   = 3 // at this tick a replica stands still
)

func run(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	name := "report:" + uuid.NewString()
	sent := &ledger{out: out}
	start := time.Now()
	errs := make(chan error, 3)
	for _, who := range []string{"east", "north", "west"} {
		go func() {
			client := holdfast.New(rdb) // each replica is a process of its own
			defer client.Close()
			// The lease is not renewed: a replica that takes longer than the limit has missed its
			// tick.
			r := replica{who, client.Mutex(name, holdfast.Fixed(limit)), sent}
			errs <- r.follow(ctx, start)
		}()
	}
	return errors.Join(<-errs, <-errs, <-errs, sent.check())
}

// replica is one process with the schedule.
type replica struct {
	who  string
	job  holdfast.Locker
	sent *ledger
}

// follow runs the job at each tick, unless another replica does.
func (r replica) follow(ctx context.Context, start time.Time) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if r.sent.enough() {
			return nil
		}
		if err := r.tick(ctx, int(time.Since(start)/every)); err != nil {
			return err
		}
	}
}

// tick sends the report of that tick, unless another replica is sending it or has sent it. It
// does not wait for the lock.
func (r replica) tick(ctx context.Context, tick int) error {
	l, err := r.job.TryLock(ctx)
	if errors.Is(err, holdfast.ErrBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer l.Release(ctx)

	// The lock keeps two replicas from sending at the same time. Only the ledger knows whether
	// another replica has sent this report and released the lock already.
	if r.sent.last() >= tick {
		return nil
	}
	if err := send(l.Context(ctx)); err != nil {
		return nil // the lease is lost: the next replica records the missed tick
	}
	if tick >= stuck && r.sent.firstToStop() {
		r.standStill(ctx, tick)
	}
	r.sent.add(r.who, tick, l.Token())
	return nil
}

// send takes a moment.
func send(ctx context.Context) error {
	select {
	case <-time.After(20 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// standStill behaves like a stopped process: it does not see that its lease runs out and that
// another replica goes on.
func (r replica) standStill(ctx context.Context, tick int) {
	for r.sent.last() < tick && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
}
