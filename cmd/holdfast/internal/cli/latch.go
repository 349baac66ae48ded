// holdfast latch: sets, counts down, awaits and deletes a countdown latch.

package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
	"github.com/holdfast-go/holdfast/latch"
)

func (a *app) latch() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "latch",
		Short: "Set, count down, await and delete a countdown latch",
		Args:  cobra.NoArgs,
		RunE:  needsCommand,
	}
	cmd.AddCommand(a.latchSet(), a.latchDown(), a.latchWait(), a.latchDelete(),
		a.show("latch", holdfast.KindLatch, "Show what is left of a latch"))
	return cmd
}

// needsCommand is what a command does if it only has others below it.
func needsCommand(cmd *cobra.Command, _ []string) error {
	return usage(fmt.Errorf("%s needs a command: see %s --help", cmd.Name(), cmd.CommandPath()))
}

func (a *app) latchSet() *cobra.Command {
	var expires time.Duration
	cmd := &cobra.Command{
		Use:     "set NAME N",
		Short:   "Set a latch to N, if it is not set",
		Long:    "Set a latch to N, at least 1, if it is not set. If it is, exit with 1, and change nothing.",
		Example: "  holdfast latch set nightly:shards 8 --expires 2h",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil {
				return usage(fmt.Errorf("%q is not a whole number", args[1]))
			}
			var options []latch.Option
			if cmd.Flags().Changed("expires") {
				options = append(options, latch.ExpiresIn(expires))
			}
			return a.quick(cmd, func(ctx context.Context, client *holdfast.Client) error {
				set, err := client.Latch(args[0]).TrySetCount(ctx, n, options...)
				if err == nil && !set {
					err = fmt.Errorf("%s is set already", view.Name(args[0]))
				}
				return err
			})
		},
	}
	cmd.Flags().DurationVar(&expires, "expires", 0, "when the latch goes if it has not come to zero (default: never)")
	return cmd
}

func (a *app) latchDown() *cobra.Command {
	return &cobra.Command{
		Use:   "down NAME",
		Short: "Count a latch down by one, and print what is left",
		Long: lines(
			"Count a latch down by one, and print what is left. If it is not set, print 0, and change nothing.",
			"If Redis did not answer, it may have counted all the same: look before you repeat it."),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.quick(cmd, func(ctx context.Context, client *holdfast.Client) error {
				if _, err := expect(ctx, client, args[0], holdfast.KindLatch); err != nil {
					return err
				}
				left, err := client.Latch(args[0]).CountDown(ctx)
				if err != nil {
					return err
				}
				return a.print("%d", left)
			})
		},
	}
}

func (a *app) latchWait() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until a latch comes to zero",
		Long: lines(
			"Wait until a latch comes to zero. If it is not set, there is nothing to wait for. With 75 the time of --wait",
			"was over. With 1 the latch was deleted, or has run out."),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			bounded := cmd.Flags().Changed("wait")
			if bounded && wait <= 0 {
				return usage(errors.New("--wait must be more than 0"))
			}
			return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
				ctx, cancel := atMost(ctx, wait)
				defer cancel()
				return client.Latch(args[0]).Wait(ctx)
			})
		},
	}
	cmd.Flags().DurationVarP(&wait, "wait", "w", 0, "for how long at most (default: for ever)")
	return cmd
}

func (a *app) latchDelete() *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a latch: whoever waits for it gets an error",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.quick(cmd, func(ctx context.Context, client *holdfast.Client) error {
				if _, err := expect(ctx, client, args[0], holdfast.KindLatch); err != nil {
					return err
				}
				was, err := client.Latch(args[0]).Delete(ctx)
				if err == nil && !was {
					a.say("%s is not set", view.Name(args[0]))
				}
				return err
			})
		},
	}
}

// show returns the command that shows one thing of a kind that is counted.
func (a *app) show(of string, kind holdfast.Kind, short string, more ...holdfast.Kind) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.quick(cmd, func(ctx context.Context, client *holdfast.Client) error {
				i, err := expect(ctx, client, args[0], append([]holdfast.Kind{kind}, more...)...)
				switch {
				case err != nil:
					return err
				case a.json:
					return a.printJSON(view.JSON(i, false))
				case i.Kind == holdfast.KindFree:
					return a.print("%s: %s", view.Name(i.Name), unset(kind))
				case i.Kind == holdfast.KindCount:
					return a.print("%s: %d; Redis does not say whether it is a %s", view.Name(i.Name), i.Value, of)
				}
				return a.detail(i)
			})
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

// unset says that nothing stands at the name of something of that kind.
func unset(kind holdfast.Kind) string {
	if kind == holdfast.KindSlots {
		return "no number is taken"
	}
	return "not set"
}
