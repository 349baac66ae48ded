// The scale command shows what becomes of Holdfast where there is very much of something.
//
//	cd bench
//	go run ./cmd/scale held -locks 1000000 -away 10ms    how many locks one Client can keep
//	go run ./cmd/scale held -locks 1000000 -busy 6       beside processes that keep the server busy
//	go run ./cmd/scale clients -clients 1000             a server that is killed under many Clients
//	go run ./cmd/scale waiters -waiters 100000           one name that very many want
//	go run ./cmd/scale gather -clients 1000 -do waiting  many Clients that are idle, hold or wait
//	go run ./cmd/scale contended -names 10000            one Client that waits for very many names
//	go run ./cmd/scale names -names 1000000              what is left of names that are used once
//	go run ./cmd/scale shares -goroutines 2,2,1,1        one lock, and unequal numbers in the processes
//
// Each starts a Redis server and processes of its own, and prints what it sees while it runs and at
// the end. The compare command runs them too, and puts their figures into docs/performance/measurements.md.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	child()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	workloads := map[string]func(ctx context.Context, args []string) error{"held": held, "clients": clients,
		"waiters": waiters, "gather": gather, "contended": contended, "names": names, "shares": shares}
	err := fmt.Errorf("say which workload: held, clients, waiters, gather, contended, names or shares")
	if len(os.Args) > 1 && workloads[os.Args[1]] != nil {
		err = workloads[os.Args[1]](ctx, os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}
