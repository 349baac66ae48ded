// holdfast held and wait: questions of scripts, whose answers are exit codes.

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/observe"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
	"github.com/holdfast-go/holdfast/internal/inspect"
)

const (
	codeFree      = 1  // of held
	codeUndecided = 70 // of held: what is 1 of other commands, so that 1 says nothing but free
)

func (a *app) held() *cobra.Command {
	return &cobra.Command{
		Use:   "held NAME",
		Short: "Exit with 0 if somebody holds a name, with 1 if nobody does",
		Long: lines(
			"Exit with 0 if somebody holds NAME, and with 1 if nobody does, and print nothing. Any other code says that it is",
			"not known: 69 if Redis did not answer, 77 if it does not allow to look, 70 if it failed otherwise, 64 if nobody",
			"can hold such a thing. So \"if holdfast held NAME\" does nothing in an outage. To do something while nobody holds",
			"it, do not turn that around: see holdfast wait.",
			"",
			"Held is a lock with a holder or readers, an election with a leader, work of a Once under way (its name is",
			"NAME:KEY), and leased permits of which one is taken."),
		Example: "  if holdfast held deploy; then echo 'a deploy is under way'; fi",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.quick(cmd, func(ctx context.Context, client *holdfast.Client) error {
				i, err := client.Inspect(ctx, args[0])
				if err != nil {
					return err
				}
				held, err := isHeld(i)
				if err == nil && !held {
					err = &exit{codeFree, nil}
				}
				return err
			})
			if code, quiet := codeOf(err); code == codeFailed && !quiet {
				return &exit{codeUndecided, err}
			}
			return err
		},
	}
}

// isHeld reports whether somebody holds what was inspected, or an error of usage if nobody can. A number may be leased
// permits of which none is taken.
func isHeld(i holdfast.Inspection) (bool, error) {
	switch i.Kind {
	case holdfast.KindLatch, holdfast.KindSemaphore, holdfast.KindBarrier, holdfast.KindLimiter, holdfast.KindUnknown:
		return false, usage(fmt.Errorf("%s is %s, which nobody holds", view.Name(i.Name), view.A(i.Kind)))
	}
	return len(i.Holders) > 0, nil
}

// waiting is what the flags of wait say.
type waiting struct {
	atOnce bool
	most   time.Duration
}

func (a *app) wait() *cobra.Command {
	var w waiting
	cmd := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until nobody holds a name",
		Long: lines(
			"Wait until nobody holds NAME, and exit with 0: then, and only then. It takes nothing, so another may hold it a",
			"moment later: to do something alone, see holdfast run. With 75 it is still held, and the time of --wait is over.",
			"With 69 Redis did not answer for --timeout.",
			"",
			"It looks as holdfast watch does: every second, and after each message about the name."),
		Example: "  holdfast wait deploy --wait 10m && ./announce",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			bounded := cmd.Flags().Changed("wait")
			switch {
			case bounded && w.atOnce:
				return usage(errors.New("either --try or --wait"))
			case bounded && w.most <= 0:
				return usage(errors.New("--wait must be more than 0: see --try"))
			}
			o := observe.Options{Pattern: inspect.Literal(args[0]), Patience: a.timeout}
			return a.observe(cmd, o, func(ctx context.Context, observer *observe.Observer) error {
				return a.untilFree(ctx, observer, args[0], w)
			})
		},
	}
	cmd.Flags().BoolVarP(&w.atOnce, "try", "n", false, "do not wait: exit with 75 if somebody holds it")
	cmd.Flags().DurationVarP(&w.most, "wait", "w", 0, "wait for at most so long, then exit with 75 (default: for ever)")
	return cmd
}

// untilFree returns nil once a look finds that nobody holds a name.
func (a *app) untilFree(ctx context.Context, o *observe.Observer, name string, w waiting) error {
	errFree, errLate := errors.New("it is free"), errors.New("the time is over")
	if w.most > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, w.most, errLate)
		defer stop()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var seen time.Time // when it was seen to be held
	err := o.Follow(ctx, func(c observe.Change) {
		if c.Err != nil {
			cancel(c.Err)
			return
		}
		seen = time.Now()
		i := c.States[0] // of a single name there is one
		switch held, err := isHeld(i); {
		case err != nil:
			cancel(err)
		case !held:
			cancel(errFree)
		case w.atOnce:
			cancel(&exit{codeBusy, fmt.Errorf("%s is held: %s", view.Name(name), heldBy(i, i.Holders))})
		}
	})
	switch {
	case errors.Is(err, errFree):
		return nil
	case errors.Is(err, errLate) && time.Since(seen) > 2*time.Second: // a look comes every second
		return &exit{codeUnavailable, fmt.Errorf("whether %s is still held is not known: Redis does not answer", view.Name(name))}
	case errors.Is(err, errLate):
		return &exit{codeBusy, fmt.Errorf("%s is still held after %v", view.Name(name), w.most)}
	}
	return err
}
