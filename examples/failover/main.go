// Failover shows what happens to a lock when the master of a Redis fails before its replica has
// received the grant, and the replica takes over. Without further measures the next caller gets
// the lock as well, and only the fencing token can refuse the first holder. With Replicas(1)
// the first caller is not granted the lock. With a quorum of three servers the first holder
// keeps the lock, and the next caller does not get it.
//
//	go run ./examples/failover
//
// It starts servers of its own, so it needs redis-server on the PATH.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fence"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	logging.Disable() // go-redis's log, which reports each connection that a dead server refuses
	for _, scene := range []func(context.Context, io.Writer) error{withoutTier, withReplicas, withQuorum} {
		if err := scene(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

// withoutTier shows that A's grant dies with the master.
func withoutTier(ctx context.Context, out io.Writer) error {
	fmt.Fprintln(out, "One master with a replica, nothing asked for:")
	master, replica, err := startPair(ctx)
	if err != nil {
		return err
	}
	defer stopAll(master, replica)
	a, b := holdfast.New(master.rdb), holdfast.New(replica.rdb)
	defer a.Close()
	defer b.Close()

	if err := replica.cutOff(ctx); err != nil {
		return err
	}
	first, err := a.Mutex("invoices").Lock(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "  A has the lock; the replica has not heard of it")
	if err := failOver(ctx, master, replica); err != nil {
		return err
	}
	second, err := b.Mutex("invoices").Lock(ctx)
	if err != nil {
		return err
	}
	defer second.Release(ctx)
	fmt.Fprintln(out, "  the master dies, the replica takes over: B has the lock as well")

	var books resource
	if err := books.write(second.Token()); err != nil {
		return fmt.Errorf("the fence refuses the holder: %w", err)
	}
	err = books.write(first.Token())
	fmt.Fprintf(out, "  B writes, then A: %v\n", err)
	if !errors.Is(err, fence.ErrStale) {
		return errors.New("two have written")
	}
	return nil
}

// withReplicas shows that A is not granted a lock if the replica does not have the grant.
func withReplicas(ctx context.Context, out io.Writer) error {
	fmt.Fprintln(out, "The same, with Replicas(1):")
	master, replica, err := startPair(ctx)
	if err != nil {
		return err
	}
	defer stopAll(master, replica)
	a, b := holdfast.New(master.rdb, holdfast.WithReplicas(1)), holdfast.New(replica.rdb)
	defer a.Close()
	defer b.Close()

	if err := replica.cutOff(ctx); err != nil {
		return err
	}
	_, err = a.Mutex("invoices").Lock(ctx)
	fmt.Fprintf(out, "  A is refused: %v\n", err)
	if !errors.Is(err, holdfast.ErrNotReplicated) {
		return errors.New("the master alone has granted the lock")
	}
	if err := failOver(ctx, master, replica); err != nil {
		return err
	}
	second, err := b.Mutex("invoices").Lock(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "  the master dies, the replica takes over: B alone has the lock")
	return second.Release(ctx)
}

// withQuorum shows that A keeps a lock if two of three servers have the grant.
func withQuorum(ctx context.Context, out io.Writer) error {
	fmt.Fprintln(out, "Three masters without replicas, as a quorum:")
	servers, err := startServers(ctx, 3)
	if err != nil {
		return err
	}
	defer stopAll(servers...)
	var a, b []*holdfast.Client
	for _, s := range servers {
		as, bs := holdfast.New(s.rdb), holdfast.New(s.rdb)
		defer as.Close()
		defer bs.Close()
		a, b = append(a, as), append(b, bs)
	}

	first, err := holdfast.NewQuorum("invoices", a).Lock(ctx)
	if err != nil {
		return err
	}
	defer first.Release(ctx)
	fmt.Fprintln(out, "  A has the lock")
	if err := servers[0].replace(ctx); err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err = holdfast.NewQuorum("invoices", b).Lock(short)
	fmt.Fprintf(out, "  one master dies, and an empty one takes its place; B is refused: %v\n", err)
	if !errors.Is(err, holdfast.ErrBusy) {
		return errors.New("two of three servers forgot that A has the lock")
	}
	if err := first.Err(); err != nil {
		return fmt.Errorf("two of three servers are not enough for A: %w", err)
	}
	fmt.Fprintln(out, "  A still has it")
	return nil
}

// resource is the thing that the lock protects. It compares tokens, as a database does with
// "UPDATE ... WHERE token <= $1".
type resource struct{ fence fence.Guard }

func (r *resource) write(token int64) error {
	return r.fence.Do("invoices", token, func() error { return nil })
}
