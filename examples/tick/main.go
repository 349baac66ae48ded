// Tick has three replicas of a service with the same schedule, whose clocks differ by several times
// as much as a run takes. A lock would let each of them run each job: by the time the last one comes,
// nobody holds it any more. With a tick each job runs once, on the replica that comes first.
//
//	go run ./examples/tick
//	REDIS_URL=redis://localhost:6379 go run ./examples/tick
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
)

func main() { embedded.Main(run) }

const (
	every = 100 * time.Millisecond // stands for an hour
	ahead = 2 * every              // how far a clock may be off, each way
	keep  = time.Minute            // longer than clocks may differ, and than a replica may be late
	jobs  = 5
)

// done records which replica ran which job.
type done struct {
	mu   sync.Mutex
	runs map[time.Time][]string
}

func (d *done) add(at time.Time, who string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs[at] = append(d.runs[at], who)
}

// replica is one process with the schedule.
type replica struct {
	who   string
	clock time.Duration // how far its clock is ahead
	job   string
}

// follow runs the job of each time of the schedule that it wins.
func (r replica) follow(ctx context.Context, client *holdfast.Client, schedule []time.Time, d *done) error {
	for _, at := range schedule {
		now := time.Now().Add(r.clock)
		select {
		case <-time.After(at.Sub(now)):
		case <-ctx.Done():
			return ctx.Err()
		}
		won, err := client.Tick(ctx, r.job, at, keep) // the time of the schedule, not time.Now()
		switch {
		case err != nil:
			return err
		case won:
			d.add(at, r.who)
		}
	}
	return nil
}

func run(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	start := time.Now().Add(2 * ahead).Truncate(every)
	var schedule []time.Time
	for i := range jobs {
		schedule = append(schedule, start.Add(time.Duration(i)*every))
	}
	d := &done{runs: make(map[time.Time][]string)}
	job := "report:" + uuid.NewString()
	errs := make(chan error, 3)
	for _, r := range []replica{{"slow", -ahead, job}, {"right", 0, job}, {"fast", ahead, job}} {
		go func() {
			client := holdfast.New(rdb) // each replica is a process of its own
			defer client.Close()
			errs <- r.follow(ctx, client, schedule, d)
		}()
	}
	if err := errors.Join(<-errs, <-errs, <-errs); err != nil {
		return err
	}
	for i, at := range schedule {
		if len(d.runs[at]) != 1 {
			return fmt.Errorf("job %d was run by %v", i+1, d.runs[at])
		}
		fmt.Fprintf(out, "job %d: run once, by the replica whose clock is %s\n", i+1, d.runs[at][0])
	}
	return nil
}
