// Quorum elects the sender of the invoices by a lock on five independent servers. The lock works
// while two of the servers are stopped, but not while three are stopped. A holder at that moment
// learns that its lock is lost.
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
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/examples/internal/embedded"
)

func main() { embedded.MainOn(5, run) }

func run(ctx context.Context, servers []*embedded.Server, out io.Writer) error {
	var clients []*holdfast.Client
	for _, server := range servers {
		client := holdfast.New(server.Redis)
		defer client.Close()
		clients = append(clients, client)
	}
	invoices := holdfast.NewQuorum("invoices", clients, holdfast.Renewed(3*time.Second))

	l, err := invoices.Lock(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "all up: granted by %d of 5, token %d\n", len(l.Tokens()), l.Token())
	// If a server is slow to answer, the release goes on in the background.
	if err := l.Release(ctx); err != nil {
		fmt.Fprintln(out, err)
	}

	servers[0].Stop()
	servers[1].Stop()
	before := l.Token()
	if l, err = invoices.Lock(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "two stopped: granted by %d of 5, with a greater token: %v\n", len(l.Tokens()), l.Token() > before)

	servers[2].Stop()
	stopped := time.Now()
	<-l.Done()
	fmt.Fprintf(out, "three stopped: the holder is told after %v: %v\n",
		time.Since(stopped).Round(100*time.Millisecond), errors.Is(l.Err(), holdfast.ErrLost))
	_, err = invoices.TryLock(ctx)
	fmt.Fprintf(out, "nobody is granted it now: %v\n", errors.Is(err, holdfast.ErrNoQuorum))

	if err := servers[2].Restart(); err != nil {
		return err
	}
	waited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if l, err = invoices.Lock(waited); err != nil {
		return err
	}
	fmt.Fprintf(out, "one is back, with its data: granted by %d of 5\n", len(l.Tokens()))
	if err := l.Release(ctx); err != nil {
		fmt.Fprintln(out, err)
	}
	return nil
}
