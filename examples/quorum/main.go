// Quorum elects who sends the invoices by a lock on five independent servers. It
// goes on while two of them are stopped, and not while three are; the holder at
// that moment is told.
//
//	go run ./examples/quorum
//
// It runs on five embedded servers.
package main

import (
	"context"
	"errors"
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
	var servers []*miniredis.Miniredis
	var clients []*holdfast.Client
	for range 5 {
		server, err := miniredis.Run()
		if err != nil {
			return err
		}
		defer server.Close()
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		defer rdb.Close()
		client := holdfast.New(rdb)
		defer client.Close()
		servers, clients = append(servers, server), append(clients, client)
	}
	invoices := holdfast.NewQuorum("invoices", clients, holdfast.Renewed(2*time.Second))

	l, err := invoices.Lock(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "all up: granted by %d of 5, token %d\n", len(l.Tokens()), l.Token())
	if err := l.Release(ctx); err != nil {
		return err
	}

	servers[0].Close()
	servers[1].Close()
	before := l.Token()
	if l, err = invoices.Lock(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "two stopped: granted by %d of 5, with a greater token: %v\n", len(l.Tokens()), l.Token() > before)

	servers[2].Close()
	stopped := time.Now()
	<-l.Done()
	fmt.Fprintf(out, "three stopped: the holder is told after %v: %v\n",
		time.Since(stopped).Round(100*time.Millisecond), errors.Is(l.Err(), holdfast.ErrLost))
	_, err = invoices.TryLock(ctx)
	fmt.Fprintf(out, "nobody is granted it now: %v\n", errors.Is(err, holdfast.ErrNoQuorum))

	if err := servers[2].Restart(); err != nil {
		return err
	}
	waited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if l, err = invoices.Lock(waited); err != nil {
		return err
	}
	fmt.Fprintf(out, "one is back, with its data: granted by %d of 5\n", len(l.Tokens()))
	return l.Release(ctx)
}

// quiet keeps go-redis from logging each connection that a stopped server
// refuses.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}
