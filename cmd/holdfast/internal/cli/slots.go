// holdfast slots: shows who has which number, and frees one.

package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

func (a *app) slots() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "slots",
		Short: "Show who has which of some numbered slots, and free one",
		Args:  cobra.NoArgs,
		RunE:  needsCommand,
	}
	cmd.AddCommand(a.show("Slots", holdfast.KindSlots, "Show who has which number"), a.slotsFree())
	return cmd
}

func (a *app) slotsFree() *cobra.Command {
	var yes *bool
	cmd := &cobra.Command{
		Use:   "free NAME N",
		Short: "Take a number from its holder, or end its quarantine",
		Long: lines(
			"Take the number N from its holder, or end its quarantine, so that it may be given out again. It says from whom,",
			"and asks first. The holder's work may still be going on: use it only if you know that it is not. The holder is",
			"notified by its next renewal. If the number has changed hands while you were asked, nothing is changed. Who has",
			"taken it from whom, and from where, is printed on standard error, and kept in Redis for a day, where holdfast",
			"inspect shows it."),
		Example: "  holdfast slots free worker-id 7",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return usage(fmt.Errorf("%q is not a whole number", args[1]))
			}
			return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
				return a.freeSlot(ctx, client, args[0], n, *yes)
			})
		},
	}
	a.jsonFlag(cmd)
	cmd.Flags().StringVar(&a.as, "as", "", "what is noted beside user and host, such as why")
	yes = confirmFlag(cmd)
	return cmd
}

// freeSlot takes a number from its holder, and prints from whom.
func (a *app) freeSlot(ctx context.Context, client *holdfast.Client, name string, n int, yes bool) error {
	i, from, err := a.slotOf(ctx, client, name, n)
	if err != nil {
		return err
	}
	if len(from) == 0 {
		a.say("nobody has number %d of %s", n, view.Name(name))
		return nil
	}
	question := "Take %s from %s? The work may still be going on."
	if from[0].Quarantined {
		question = "End the quarantine of a number of %s: %s?"
	}
	if err := a.askFirst(ctx, yes, question, view.Name(name), heldBy(i, from)); err != nil {
		return err
	}
	now, still, err := a.slotOf(ctx, client, name, n)
	if err != nil {
		return err
	}
	if !sameHolders(from, still) {
		return slotChangedHands(name, n)
	}
	within, cancel := a.within(ctx)
	defer cancel()
	took, err := client.Slots(name, int(now.All)).ForceRelease(within, n, still[0].Owner)
	switch {
	case err != nil:
		return fmt.Errorf("%w; it may have been taken from %s", err, heldBy(now, still))
	case !took:
		_, others, err := a.slotOf(ctx, client, name, n)
		if err != nil {
			return err
		}
		if len(others) > 0 {
			return slotChangedHands(name, n)
		}
		a.say("nobody has number %d of %s any more", n, view.Name(name))
		return nil
	}
	a.sayForced(within, now, still)
	return a.tellTaken(now, still)
}

func slotChangedHands(name string, n int) error {
	return fmt.Errorf("number %d of %s has changed hands, and nothing was changed", n, view.Name(name))
}

// slotOf returns what is stored at a name, and who has the number n; nobody if that is free.
func (a *app) slotOf(ctx context.Context, client *holdfast.Client, name string, n int) (holdfast.Inspection, []holdfast.Holder, error) {
	ctx, cancel := a.within(ctx)
	defer cancel()
	i, err := expect(ctx, client, name, holdfast.KindSlots)
	if err != nil || i.Kind != holdfast.KindSlots {
		return i, nil, err
	}
	at := slices.IndexFunc(i.Holders, func(h holdfast.Holder) bool { return h.Number == n })
	if at < 0 {
		return i, nil, nil
	}
	return i, i.Holders[at : at+1], nil
}
