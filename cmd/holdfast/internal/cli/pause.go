// holdfast pause, resume: nothing new begins at a name for a while.

package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

func (a *app) pause() *cobra.Command {
	var lasts time.Duration
	var why string
	cmd := &cobra.Command{
		Use:   "pause NAME",
		Short: "Keep new work from beginning at a name for a while",
		Long: lines(
			"Pause NAME: its ticks are not taken, its leader steps down within 1.25 s and nobody leads, and work that heeds",
			"a pause does not begin, until --for is over or \"holdfast resume\". Work that is under way goes on, and so does",
			"what does not heed a pause, such as a Mutex. A pause of a paused name replaces the one before. ls and the",
			"console show who has paused it, and why."),
		Example: "  holdfast pause nightly-report --for 2h --because 'migration 7'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if lasts <= 0 {
				return usage(errors.New("--for must be more than 0"))
			}
			return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
				ctx, cancel := a.within(ctx)
				defer cancel()
				until := time.Now().Add(lasts)
				if err := client.Pause(ctx, args[0], holdfast.Until(until), holdfast.Because(why)); err != nil {
					return err
				}
				a.say("%s is paused until %s", view.Name(args[0]), until.UTC().Format(time.RFC3339))
				return nil
			}, holdfast.WithIdentity(a.operator()))
		},
	}
	cmd.Flags().DurationVar(&lasts, "for", time.Hour, "for how long, at most 720h")
	cmd.Flags().StringVar(&why, "because", "", "why, for those who are kept from their work")
	return cmd
}

func (a *app) resume() *cobra.Command {
	return &cobra.Command{
		Use:   "resume NAME",
		Short: "End the pause of a name",
		Long:  lines("End the pause of NAME. What it has kept goes on within 1.25 s. If NAME is not paused, do nothing."),
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.quick(cmd, func(ctx context.Context, client *holdfast.Client) error {
				return client.Resume(ctx, args[0])
			})
		},
	}
}
