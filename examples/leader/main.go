//go:build unix

// Leader starts three processes that campaign for one lead, and lets happen to them what happens to
// processes: the leader is killed; the next leader is stopped for longer than its lease; the last is
// shut down. Each time another leads, and each term has a greater token.
//
//	go run ./examples/leader
//	REDIS_URL=redis://localhost:6379 go run ./examples/leader
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
	"github.com/holdfast-go/holdfast/leader"
)

func main() {
	if id := os.Getenv("LEADER_ID"); id != "" {
		if err := candidate(id, os.Getenv("LEADER_OF"), os.Getenv("LEADER_REDIS")); err != nil {
			fmt.Fprintln(os.Stderr, id, err)
			os.Exit(1)
		}
		return
	}
	embedded.Main(run)
}

const lease = time.Second

// candidate is one of the three processes. It leads, whenever it can, until it is shut down.
func candidate(id, name, url string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	rdb, err := embedded.Dial(ctx, url)
	if err != nil {
		return err
	}
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()

	err = client.Leader(name, leader.Identity(id), leader.Lease(lease)).Run(ctx,
		func(ctx context.Context, term *leader.Term) error {
			fmt.Printf("%s: I lead\n", id)
			<-ctx.Done() // the work: here it only waits for the end of the term
			fmt.Printf("%s: I lead no more: %v\n", id, context.Cause(ctx))
			return nil
		})
	if errors.Is(err, context.Canceled) {
		return nil // it was shut down
	}
	return err
}

func run(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	name := "scheduler:" + uuid.NewString()
	url := cmp.Or(os.Getenv("REDIS_URL"), "redis://"+rdb.Options().Addr)
	client := holdfast.New(rdb)
	defer client.Close()
	processes := make(map[string]*exec.Cmd)
	defer func() {
		for _, p := range processes {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	}()
	for _, id := range []string{"east", "north", "west"} {
		p, err := start(ctx, id, name, url, out)
		if err != nil {
			return err
		}
		processes[id] = p
	}

	// What happens to each leader, in turn. The first two are noticed when the lease is over, the
	// third at once.
	ends := []struct {
		what   string
		signal syscall.Signal
	}{{"is killed", syscall.SIGKILL}, {"is stopped", syscall.SIGSTOP}, {"is shut down", syscall.SIGTERM}}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	stopped, last := "", int64(0)
	for info := range client.Leader(name).Observe(ctx) {
		if !info.Leads() {
			continue
		}
		if info.Token <= last {
			return fmt.Errorf("%s has the token %d, after %d", info.Identity, info.Token, last)
		}
		last = info.Token
		if len(ends) == 0 {
			fmt.Fprintf(out, "%s leads again\n", info.Identity)
			return nil
		}
		p := processes[info.Identity].Process
		fmt.Fprintf(out, "%s leads, and %s\n", info.Identity, ends[0].what)
		if err := p.Signal(ends[0].signal); err != nil {
			return err
		}
		switch ends[0].signal {
		case syscall.SIGSTOP:
			stopped = info.Identity
		case syscall.SIGTERM: // nobody else is left but the one that is stopped
			if err := processes[stopped].Process.Signal(syscall.SIGCONT); err != nil {
				return err
			}
		}
		ends = ends[1:]
	}
	return fmt.Errorf("nobody leads: %w", ctx.Err())
}

// start starts this program as one of the three processes.
func start(ctx context.Context, id, name, url string, out io.Writer) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := exec.CommandContext(ctx, exe)
	p.Env = append(os.Environ(), "LEADER_ID="+id, "LEADER_OF="+name, "LEADER_REDIS="+url)
	p.Stdout, p.Stderr = out, out
	return p, p.Start()
}
