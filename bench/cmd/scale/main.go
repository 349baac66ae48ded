// The scale command shows how many locks one Client can keep: on a quiet server, on one that other
// processes keep busy, and on one that is far away.
//
//	cd bench && go run ./cmd/scale -locks 1000000 -away 10ms -busy 6
//
// One process takes the locks and holds them. Other processes lock and release as fast as they can.
// This process looks at some of the locks on the server, and sends PING as another client would. It
// prints a line each few seconds, and at the end what became of the locks.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	child()
	var r run
	flag.IntVar(&r.Locks, "locks", 1_000_000, "how many locks the holder keeps")
	flag.DurationVar(&r.Lease, "lease", 30*time.Second, "their lease")
	flag.DurationVar(&r.Away, "away", 0, "how long each request of the holder takes to the server")
	flag.IntVar(&r.Callers, "callers", 256, "how many goroutines take the locks")
	flag.IntVar(&r.busy, "busy", 0, "how many other processes lock and release")
	flag.IntVar(&r.Goroutines, "goroutines", 256, "how many goroutines each of them has")
	flag.DurationVar(&r.window, "for", 40*time.Second, "how long the locks are held once all are taken")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := r.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}
