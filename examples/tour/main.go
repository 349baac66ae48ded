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
	"io"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, os.Getenv("REDIS_URL"), os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "tour:", err)
		os.Exit(1)
	}
}

// run is main, for a test to call. It returns an error that names each check that did not hold.
func run(ctx context.Context, out io.Writer, url string, args []string) error {
	flags := flag.NewFlagSet("tour", flag.ContinueOnError)
	list := flags.Bool("list", false, "list the scenes")
	only := flags.Int("scene", 0, "play only the scene of that `number`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("what is %q? try -list", flags.Arg(0))
	}
	if *only < 0 || *only > len(scenes) {
		return fmt.Errorf("there is no scene %d: try -list", *only)
	}
	if *list {
		for i, scene := range scenes {
			printf(out, "%2d  %s\n", i+1, scene.title)
		}
		return nil
	}
	return play(ctx, out, url, *only)
}

// play plays all scenes, or only the scene with that number if it is not 0.
func play(ctx context.Context, out io.Writer, url string, only int) (err error) {
	theatre, err := open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, theatre.close()) }()
	theatre.introduce(out)

	var failed []string
	for i, scene := range scenes {
		number := i + 1
		if only != 0 && only != number {
			continue
		}
		printf(out, "\n%d. %s\n\n", number, scene.title)
		for _, what := range theatre.stage(out).play(ctx, scene) {
			failed = append(failed, fmt.Sprintf("scene %d: %s", number, what))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d checks did not hold:\n  %s", len(failed), strings.Join(failed, "\n  "))
	}
	printf(out, "\nEvery check held.\n")
	return nil
}
