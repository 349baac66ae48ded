// What the operators' commands share: an end by a signal, the bound on a silent Redis, and questions.

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/observe"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// operators returns the commands that show what is in Redis, and change it by hand.
func (a *app) operators() []*cobra.Command {
	return []*cobra.Command{
		a.ls(), a.inspect(), a.held(), a.wait(), a.watch(), a.top(), a.acquire(), a.extend(), a.release(),
		a.latch(), a.sem(), a.slots(), a.shards(), a.once(), a.tick(), a.pause(), a.resume(), a.check(), a.console(),
	}
}

// untilSignal returns a context that ends at the first SIGINT, SIGTERM or SIGHUP. Its cause has the exit code
// that shells give to a program that a signal has ended.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-signals:
			number, _ := s.(syscall.Signal)
			cancel(&exit{128 + int(number), nil})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// bySignal returns the exit of a signal, if one has ended ctx, or else err.
func bySignal(ctx context.Context, err error) error {
	var ended *exit
	if errors.As(context.Cause(ctx), &ended) {
		return ended
	}
	return err
}

// work is what a command does with a Client.
type work = func(ctx context.Context, client *holdfast.Client) error

// quick runs what should be answered at once: with a Client, and a context that ends after --timeout.
func (a *app) quick(cmd *cobra.Command, f work) error {
	return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
		ctx, cancel := a.within(ctx)
		defer cancel()
		return f(ctx, client)
	})
}

// lasting runs what may take long: with a Client, and a context that ends at a signal.
func (a *app) lasting(cmd *cobra.Command, f work, options ...holdfast.Option) error {
	ctx, cancel := untilSignal(cmd.Context())
	defer cancel()
	client, shut, err := a.open(ctx, options...)
	if err != nil {
		return bySignal(ctx, err)
	}
	defer shut()
	return bySignal(ctx, f(ctx, client))
}

// whileAnswering returns a context that ends once Redis has not answered for --timeout.
func (a *app) whileAnswering(ctx context.Context) (_ context.Context, stop func(), err error) {
	rdb, err := a.second()
	if err != nil {
		return nil, nil, err
	}
	ctx, end := observe.WhileAnswering(ctx, rdb, a.timeout)
	return ctx, func() {
		end()
		_ = rdb.Close()
	}, nil
}

// print writes a line for people to standard output.
func (a *app) print(format string, args ...any) error {
	_, err := fmt.Fprintf(a.Out, format+"\n", args...)
	return err
}

// printJSON writes a line for programs to standard output.
func (a *app) printJSON(v any) error {
	line, err := view.Line(v)
	if err == nil {
		_, err = a.Out.Write(line)
	}
	return err
}

// askFirst asks a question, unless the answer is yes already. It returns an error if the answer is not yes, and
// one of usage if nobody can be asked.
func (a *app) askFirst(ctx context.Context, yes bool, format string, args ...any) error {
	switch {
	case yes:
		return nil
	case !terminal(a.In):
		return usage(errors.New("this asks first, and standard input is not a terminal: give --yes"))
	}
	answer := make(chan bool, 1)
	go func() { answer <- a.ask(fmt.Sprintf(format, args...)) }() // a read heeds no signal: it ends with the process
	select {
	case yes = <-answer:
	case <-ctx.Done():
		fmt.Fprintln(a.Err)
		return context.Cause(ctx)
	}
	if !yes {
		return errors.New("nothing was changed")
	}
	return nil
}

// terminal reports whether somebody may sit at the other end of a file.
func terminal(f *os.File) bool {
	if f == nil {
		return false
	}
	is, err := f.Stat()
	if err != nil || is.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(is, null)
}

// confirmFlag adds the flag that skips the question.
func confirmFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().BoolP("yes", "y", false, "do not ask first")
}

func (a *app) jsonFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
}

// expect returns what is stored at a name, or an error if it is of none of the kinds, nor free, nor a number that
// may be anything.
func expect(ctx context.Context, c *holdfast.Client, name string, kinds ...holdfast.Kind) (holdfast.Inspection, error) {
	i, err := c.Inspect(ctx, name)
	if err != nil {
		return i, err
	}
	for _, kind := range append(kinds, holdfast.KindFree, holdfast.KindCount) {
		if i.Kind == kind {
			return i, nil
		}
	}
	return i, fmt.Errorf("%s is %s, not %s", view.Name(name), view.A(i.Kind), view.A(kinds[0]))
}

// lines joins lines of help.
func lines(text ...string) string { return strings.Join(text, "\n") }
