// holdfast ls: what stands in Redis, one line each.

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

func (a *app) ls() *cobra.Command {
	var wide, owners bool
	cmd := &cobra.Command{
		Use:   "ls [PATTERN]",
		Short: "List who holds what",
		Long: lines(
			"List the locks, elections, semaphores, latches and so on that stand in Redis: who holds each, since",
			"when, for how long if nobody renews it, and how many wait. PATTERN is one of Redis's SCAN: orders:*.",
			"It only reads. It goes over all keys of Redis, and takes no more than half of the server's time."),
		Example: "  holdfast ls 'orders:*'\n  holdfast ls --json | jq -r 'select(.waiters > 10) | .name'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pattern := ""
			if len(args) == 1 {
				pattern = args[0]
			}
			return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
				all, err := a.all(ctx, client, pattern)
				if printed := a.list(all, wide, owners); printed != nil {
					return printed
				}
				return err
			})
		},
	}
	a.jsonFlag(cmd)
	cmd.Flags().BoolVar(&wide, "wide", false, "show notes too, and each waiter on a line of its own")
	cmd.Flags().BoolVar(&owners, "owners", false,
		"with --json: whole owners and permits, by which anybody can release what they hold")
	return cmd
}

// all returns what stands at the names that match, by name. If it could not look at some names, it says so, and
// returns the first such error beside the rest.
func (a *app) all(ctx context.Context, client *holdfast.Client, pattern string) ([]holdfast.Inspection, error) {
	ctx, stop, err := a.whileAnswering(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()
	var all []holdfast.Inspection
	var failed error
	for i, err := range client.InspectAll(ctx, pattern) {
		switch {
		case err == nil:
			all = append(all, i)
		case ctx.Err() != nil:
			return all, context.Cause(ctx)
		case failed == nil:
			failed = err
		default:
			a.say("%v", err)
		}
	}
	slices.SortFunc(all, func(x, y holdfast.Inspection) int { return cmp.Compare(x.Name, y.Name) })
	return all, failed
}

// list prints inspections, one line each.
func (a *app) list(all []holdfast.Inspection, wide, owners bool) error {
	if a.json {
		for _, i := range all {
			if err := a.printJSON(view.JSON(i, owners)); err != nil {
				return err
			}
		}
		return nil
	}
	if owners {
		return usage(errors.New("--owners goes with --json"))
	}
	return table(a.Out, all, wide)
}

// table writes inspections as a table. It writes nothing, not even the heading, if there are none.
func table(out io.Writer, all []holdfast.Inspection, wide bool) error {
	if len(all) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	heading, notes := "NAME\tKIND\tHELD BY\tSINCE\tLEFT\tWAITERS", ""
	if wide {
		heading += "\tNOTES"
	}
	fmt.Fprintln(w, heading)
	for _, i := range all {
		if wide {
			notes = "\t" + cmp.Or(view.Notes(i), view.None)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s%s\n", view.Name(i.Name), i.Kind, view.State(i),
			view.Ago(i.HeldSince, i.At), view.Left(i), view.Waiters(i), notes)
		if !wide {
			continue
		}
		for n, q := range i.Queue {
			fmt.Fprintf(w, "  %d.\twaits\t%s\t%s\t\t%s\n", n+1, view.Waiter(q), view.Ago(q.Since, i.At), "\t")
		}
	}
	return w.Flush()
}
