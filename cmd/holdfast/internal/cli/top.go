// holdfast top: a live screen of what is in Redis.

package cli

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/observe"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/screen"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

func (a *app) top() *cobra.Command {
	var every time.Duration
	cmd := &cobra.Command{
		Use:   "top [PATTERN]",
		Short: "Show who holds what on a live screen",
		Long: lines(
			"Show what ls shows on a screen that lives: those that most wait for come first. A name can be opened: then",
			"it shows each holder, each waiter, and what has happened at it since this began. It only reads, and costs",
			"Redis what watch costs. The keys are on its last line; q quits."),
		Example: "  holdfast top\n  holdfast top 'orders:*' --every 5s",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !terminal(a.In) || !terminal(a.Out) {
				return usage(errors.New("top needs a terminal: see ls and watch"))
			}
			o, err := a.looks(every, args)
			if err != nil {
				return err
			}
			return a.observe(cmd, o, func(ctx context.Context, observer *observe.Observer) error {
				return screen.Run(ctx, a.In, a.Out, observer, view.Name(cmp.Or(o.Pattern, "*")))
			})
		},
	}
	everyFlag(cmd, &every)
	return cmd
}

// everyFlag adds the flag that says how often to look.
func everyFlag(cmd *cobra.Command, every *time.Duration) {
	cmd.Flags().DurationVar(every, "every", time.Second, "how long from one look to the next")
}

// looks returns what to look at, and how often, from the flag and the arguments.
func (a *app) looks(every time.Duration, args []string) (observe.Options, error) {
	o := observe.Options{Every: every, Patience: a.timeout}
	if every <= 0 {
		return o, usage(errors.New("--every must be more than 0"))
	}
	if len(args) == 1 {
		o.Pattern = args[0]
	}
	return o, nil
}

// observe runs what follows an Observer.
func (a *app) observe(cmd *cobra.Command, o observe.Options, f func(context.Context, *observe.Observer) error) error {
	return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
		return f(ctx, observe.New(client, o))
	})
}
