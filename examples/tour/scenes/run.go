// Package scenes has the scenes of the tour, and plays them. It is apart from the program, so that
// another program can play them with options of its own, such as a meter.
package scenes

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast-go/holdfast"
)

// Run plays the scenes that args, the arguments of the tour, ask for, and prints to out. url is the
// Redis to play on, "" for an embedded server. Every Client of the scenes has the options. Run
// returns an error that names each check that did not hold.
func Run(ctx context.Context, out io.Writer, url string, args []string, options ...holdfast.Option) error {
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
	return play(ctx, out, url, *only, options)
}

// play plays all scenes, or only the scene with that number if it is not 0.
func play(ctx context.Context, out io.Writer, url string, only int, options []holdfast.Option) (err error) {
	theatre, err := open(ctx, url, options)
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
