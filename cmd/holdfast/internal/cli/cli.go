// Package cli has the commands of holdfast: each file is one command, or what several share.
//
// A command reads its flags, opens the Redis of --url, calls the library, and prints. What is meant for
// programs goes to standard output, and everything else to standard error.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/address"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/child"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// Streams are the standard streams of a command. A child inherits them as they are.
type Streams struct{ In, Out, Err *os.File }

// app is what the commands of one run of the program share.
type app struct {
	Streams
	access  access
	at      *address.Address // where the Redis in use is, once that was read
	timeout time.Duration
	as      string
	json    bool
	begun   bool           // the arguments were right
	key     syscall.Signal // the signal of a key at the terminal that has ended the program; 0: none has
}

// Main runs the command that args name, and returns its exit code.
func Main(streams Streams, args []string) int {
	a := &app{Streams: streams}
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(context.Background())
	if err != nil && !a.begun {
		err = usage(fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath()))
	}
	code := a.code(err)
	if code != 0 && cmd.Annotations[forEval] != "" {
		a.failClosed(code)
	}
	if a.key != 0 {
		child.Resend(a.key)
	}
	return code
}

// root returns the command above all others.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Run programs under distributed locks, and see who holds what",
		Long: "holdfast runs programs under the locks that Go programs share through Redis by the library Holdfast,\n" +
			"and shows who holds what.\n\n" + accessHelp + "\n\n" + codesHelp,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	flags := root.PersistentFlags()
	a.access = accessFlags(flags)
	flags.DurationVar(&a.timeout, "timeout", 5*time.Second, "how long to try to reach Redis")
	root.AddCommand(
		a.run(), a.leader(), a.attach(),
		a.manual(),
	)
	root.AddCommand(a.operators()...)
	a.noteBegin(root)
	a.completes(root)
	return root
}

// released is the version of a release, which its build sets (.goreleaser.yaml): at its tag the module of the command has
// none yet.
var released string

// version returns the version of the release, or of the module that was built, or the commit of a checkout.
func version() string {
	if released != "" {
		return released
	}
	info, known := debug.ReadBuildInfo()
	if !known {
		return "unknown"
	}
	return info.Main.Version
}

// noteBegin makes c, and each command below it, look at its flags, and note that it begins: an error before that is one
// of usage.
func (a *app) noteBegin(c *cobra.Command) {
	if run := c.RunE; run != nil {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			if err := sound(cmd, args); err != nil {
				return err
			}
			a.begun = true
			return run(cmd, args)
		}
	}
	for _, below := range c.Commands() {
		a.noteBegin(below)
	}
}

// say prints a line for people. Errors of the library begin as the line does. What a name or an argument has in it must
// not do anything to a terminal.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.Err, "holdfast: %s\n", view.Plain(strings.TrimPrefix(fmt.Sprintf(format, args...), "holdfast: ")))
}

// code returns the exit code for the outcome of a command, and prints the error.
func (a *app) code(err error) int {
	err = a.plain(err)
	code, quiet := codeOf(err)
	if err != nil && !quiet {
		a.say("%v", err)
	}
	return code
}

// within returns a context that ends after the time that a command may take to reach Redis.
func (a *app) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, a.timeout, errors.New("Redis was not reached within "+a.timeout.String()))
}

// ask prints a question, and reports whether the answer was yes.
func (a *app) ask(question string) bool {
	fmt.Fprint(a.Err, question+" [y/N] ")
	var answer string
	if _, err := fmt.Fscanln(io.Reader(a.In), &answer); err != nil {
		return false
	}
	return answer == "y" || answer == "yes"
}
