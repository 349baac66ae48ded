//go:build unix

// Shards starts three processes that share twelve shards, and lets happen to them what happens to processes: one is
// killed, one is stopped for longer than its lease. Each time the others go on with its shards, evenly. When the one
// that was stopped goes on, it finds that it has lost its shards, and gets its share again.
//
//	go run ./examples/shards
//	REDIS_URL=redis://localhost:6379 go run ./examples/shards
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
	"github.com/holdfast-go/holdfast/shards"
)

func main() {
	if id := os.Getenv("SHARDS_ID"); id != "" {
		if err := member(id, os.Getenv("SHARDS_OF"), os.Getenv("SHARDS_REDIS")); err != nil {
			fmt.Fprintln(os.Stderr, id, err)
			os.Exit(1)
		}
		return
	}
	embedded.Main(run)
}

const (
	lease = time.Second
	size  = 12
)

// member is one of the three processes. It works on its share until it is shut down.
func member(id, name, url string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	rdb, err := embedded.Dial(ctx, url)
	if err != nil {
		return err
	}
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()

	var lost atomic.Int64 // works that have said so, of this membership
	err = client.Shards(name, size, shards.Identity(id), shards.Lease(lease)).Run(ctx,
		func(ctx context.Context, s *shards.Shard) error {
			<-ctx.Done() // the work: here it only waits until it is to end
			if cause := context.Cause(ctx); errors.Is(cause, holdfast.ErrLost) && lost.Add(1) == 1 {
				fmt.Printf("%s: I have lost my shards: %v\n", id, cause)
			}
			return nil
		})
	if errors.Is(err, context.Canceled) {
		return nil // it was shut down
	}
	return err
}

func run(ctx context.Context, rdb *redis.Client, out io.Writer) error {
	name := "orders:" + uuid.NewString()
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

	// What happens, each time once the members share the shards evenly.
	steps := []struct {
		members int
		then    string
		id      string
		signal  syscall.Signal
	}{
		{3, "east is killed", "east", syscall.SIGKILL},
		{2, "north is stopped", "north", syscall.SIGSTOP},
		{1, "north goes on", "north", syscall.SIGCONT},
		{2, "that is all", "", 0},
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for all := range client.Shards(name, size).Watch(ctx) {
		has := counts(all)
		step := steps[0]
		if !even(has, step.members) {
			continue
		}
		fmt.Fprintf(out, "%s; %s\n", sentence(has), step.then)
		if steps = steps[1:]; len(steps) == 0 {
			return nil
		}
		if err := processes[step.id].Process.Signal(step.signal); err != nil {
			return err
		}
	}
	return fmt.Errorf("the members do not share the shards: %w", ctx.Err())
}

// counts returns how many shards each member has.
func counts(all []shards.Info) map[string]int {
	has := make(map[string]int)
	for _, info := range all {
		if info.Owned() {
			has[info.Identity]++
		}
	}
	return has
}

// even reports whether so many members have all shards, each as many as another.
func even(has map[string]int, members int) bool {
	for _, n := range has {
		if n != size/members {
			return false
		}
	}
	return len(has) == members
}

func sentence(has map[string]int) (text string) {
	for i, id := range slices.Sorted(maps.Keys(has)) {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s has %d shards", id, has[id])
	}
	return text
}

// start starts this program as one of the three processes.
func start(ctx context.Context, id, name, url string, out io.Writer) (*exec.Cmd, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := exec.CommandContext(ctx, exe)
	p.Env = append(os.Environ(), "SHARDS_ID="+id, "SHARDS_OF="+name, "SHARDS_REDIS="+url)
	p.Stdout, p.Stderr = out, out
	return p, p.Start()
}
