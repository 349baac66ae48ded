// Multilock books a room, a projector and a driver together or not at all: three
// locks on three servers. When one server is stopped nobody gets anything, and
// what had been taken on the others is free again.
//
//	go run ./examples/multilock
//
// It runs on three embedded servers.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	redis.SetLogger(quiet{})
	things := []string{"room", "projector", "driver"}
	var servers []*miniredis.Miniredis
	var locks, reversed []holdfast.Locker
	for _, thing := range things {
		server, err := miniredis.Run()
		if err != nil {
			return err
		}
		defer server.Close()
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer rdb.Close()
		client := holdfast.New(rdb)
		defer client.Close()
		servers = append(servers, server)
		locks = append(locks, client.Mutex(thing))
		reversed = append([]holdfast.Locker{client.Mutex(thing)}, reversed...)
	}

	// The other booker names them the other way round; both take them in one order.
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

	servers[1].Close()
	fmt.Fprintf(out, "the server of the %s stops\n", things[1])
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := ours.Lock(short); err != nil {
		fmt.Fprintln(out, "not booked: two of three are not enough")
	}
	time.Sleep(50 * time.Millisecond)
	fmt.Fprintf(out, "room held: %v, driver held: %v\n", servers[0].Exists("room"), servers[2].Exists("driver"))
	return nil
}

// quiet keeps go-redis from logging each connection that the stopped server
// refuses.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
