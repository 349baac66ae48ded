// The compare command measures Holdfast beside the libraries that a Go program might use in its
// place, beside Redisson where Java is present, and beside what the server itself can do. It writes
// the tables of docs/performance.md and of docs/performance/measurements.md, their charts and the figures as JSON.
//
//	cd bench
//	go run ./cmd/compare              all of it; -list says how long it takes
//	go run ./cmd/compare -resume      goes on with a run that was cut off
//	go run ./cmd/compare -quick       a look: so few and short rounds decide little
//	go run ./cmd/compare -also PATH   on another server, whose figures stand beside the main ones
//
// A run of only some workloads keeps the existing figures of the other workloads. The page says when
// each workload was measured, and of which commit.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"

	"github.com/holdfast-go/holdfast/bench/internal/crew"
)

func main() {
	crew.Child()
	var o options
	var only string
	flag.StringVar(&only, "only", "", "run the workloads that this regular expression finds")
	flag.IntVar(&o.rounds, "rounds", 0, "how many rounds (default 9, with -quick 3, and as the workload says)")
	flag.BoolVar(&o.quick, "quick", false, "measure for a shorter time")
	flag.StringVar(&o.out, "out", "../docs", "the folder of performance.md and of performance/")
	flag.BoolVar(&o.render, "render", false, "run nothing, write page and charts from the figures that are there")
	flag.BoolVar(&o.list, "list", false, "list the workloads, their contenders, and how long they take")
	flag.BoolVar(&o.resume, "resume", false, "leave out what the last run of this commit has measured")
	flag.StringVar(&o.also, "also", "", "measure on this redis-server or valkey-server, without Redisson, and keep the figures beside the main ones")
	flag.StringVar(&o.profiles, "profiles", "", "a folder for CPU profiles of each process in each round")
	flag.BoolVar(&o.java, "java", true, "measure Redisson too, where Java and Maven are present")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if o.only, err = regexp.Compile(only); err == nil {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}
