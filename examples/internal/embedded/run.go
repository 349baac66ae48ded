// Package embedded gives the examples a Redis to run on: the Redis that REDIS_URL names, or one in
// this process. Your own program already has a go-redis client, and needs none of this.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Example is what an example does on one Redis. It returns an error if anything is not as the
// example says.
type Example func(ctx context.Context, rdb *redis.Client, out io.Writer) error

// ExampleOn is an Example on several servers, which it may stop.
type ExampleOn func(ctx context.Context, servers []*Server, out io.Writer) error

// Main is the main function of an Example. It runs the example on the Redis of REDIS_URL, or on an
// embedded Redis, until the example is done or interrupted. If the example fails, the program exits
// with status 1.
func Main(example Example) {
	exit(func(ctx context.Context) error { return run(ctx, os.Stdout, os.Getenv("REDIS_URL"), example) })
}

// MainOn is Main for an example on n servers, which are always embedded.
func MainOn(n int, example ExampleOn) {
	exit(func(ctx context.Context) error { return runOn(ctx, os.Stdout, n, example) })
}

func exit(program func(ctx context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := program(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

// run runs the example on the Redis at url, or on an embedded Redis if url is empty. Any number of
// the example's goroutines may write to the out that the example gets.
func run(ctx context.Context, out io.Writer, url string, example Example) (err error) {
	if url == "" {
		return runOn(ctx, out, 1, func(ctx context.Context, servers []*Server, out io.Writer) error {
			return example(ctx, servers[0].Redis, out)
		})
	}
	rdb, err := Dial(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rdb.Close()) }()
	return example(ctx, rdb, &lines{out: out})
}

// runOn runs the example on n embedded servers.
func runOn(ctx context.Context, out io.Writer, n int, example ExampleOn) error {
	servers, err := Start(n)
	if err != nil {
		return err
	}
	defer Close(servers)
	return example(ctx, servers, &lines{out: out})
}

// Dial returns a client of the Redis at url, and checks that the Redis answers.
func Dial(ctx context.Context, url string) (*redis.Client, error) {
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	rdb := redis.NewClient(options)
	if err := rdb.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("REDIS_URL: %w", err), rdb.Close())
	}
	return rdb, nil
}

// lines is a writer that lets only one goroutine write at a time.
type lines struct {
	mu  sync.Mutex // guards out
	out io.Writer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}
