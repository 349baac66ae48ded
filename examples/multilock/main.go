// Multilock books a room, a projector and a driver together or not at all: three locks on three
// servers. When one server is stopped, no caller gets anything, and the locks that a caller had
// taken on the other servers are free again.
//
//	go run ./examples/multilock
//
// It runs on three embedded servers.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
)

func main() { embedded.MainOn(3, run) }

func run(ctx context.Context, servers []*embedded.Server, out io.Writer) error {
	things := []string{"room", "projector", "driver"}
	var locks, reversed []holdfast.Locker
	for i, thing := range things {
		client := holdfast.New(servers[i].Redis)
		defer client.Close()
		lock := client.Mutex(thing)
		locks, reversed = append(locks, lock), append([]holdfast.Locker{lock}, reversed...)
	}

	// The other caller names the locks in the reverse order; both take them in the same order.
	ours, theirs := holdfast.NewMultiLock(locks...), holdfast.NewMultiLock(reversed...)
	l, err := ours.Lock(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "booked all three, with the tokens %d\n", l.Tokens())
	_, err = theirs.TryLock(ctx)
	fmt.Fprintf(out, "another booker: %v\n", err)
	if err := l.Release(ctx); err != nil {
		return err
	}

	servers[1].Stop()
	fmt.Fprintf(out, "the server of the %s stops\n", things[1])
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := ours.Lock(short); err == nil {
		return errors.New("booked, with two of three")
	}
	fmt.Fprintln(out, "not booked: two of three are not enough")
	gaveUp := time.Now()

	// The locks that the caller had taken by then are released at once. They do not stay for their
	// 30 s.
	driver, err := locks[2].Lock(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the %s is free for others after %v\n", things[2], time.Since(gaveUp).Round(time.Millisecond))
	if err := driver.Release(ctx); err != nil {
		return err
	}

	if err := servers[1].Restart(); err != nil {
		return err
	}
	if l, err = ours.Lock(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "the server is back: booked")
	return l.Release(ctx)
}
