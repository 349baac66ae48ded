// The tour shows what Holdfast does, scene by scene, and checks each claim that it prints:
//
//	go run ./examples/tour             all scenes, on an embedded server
//	go run ./examples/tour -list       a list of the scenes
//	go run ./examples/tour -scene 4    one scene
//	REDIS_URL=redis://localhost:6379 go run ./examples/tour -scene 1
//
// With REDIS_URL the tour runs on that server. Start it in two terminals, and the two tours take
// turns in scene 1. Scenes that need several servers, and stop them, use embedded servers even
// then.
//
// It exits with status 0 if every check held.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/holdfast-go/holdfast/examples/tour/scenes"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := scenes.Run(ctx, os.Stdout, os.Getenv("REDIS_URL"), os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "tour:", err)
		os.Exit(1)
	}
}
