// holdfast inspect: one name in detail.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

func (a *app) inspect() *cobra.Command {
	var owners bool
	cmd := &cobra.Command{
		Use:   "inspect NAME...",
		Short: "Show who holds a name, who waits for it, and for how long",
		Long: lines(
			"Show what stands at each NAME: its kind, each holder, each of the first hundred waiters in their order,",
			"what is counted, and how long that lasts if nobody renews or releases it. It only reads.",
			"The name of a key of a Once is NAME:KEY."),
		Example: "  holdfast inspect orders:42",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if owners && !a.json {
				return usage(errors.New("--owners goes with --json"))
			}
			return a.lasting(cmd, func(ctx context.Context, client *holdfast.Client) error {
				for _, name := range args {
					if err := a.inspectOne(ctx, client, name, owners); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	a.jsonFlag(cmd)
	cmd.Flags().BoolVar(&owners, "owners", false,
		"with --json: whole owners and permits, by which anybody can release what they hold")
	return cmd
}

func (a *app) inspectOne(ctx context.Context, client *holdfast.Client, name string, owners bool) error {
	ctx, cancel := a.within(ctx)
	defer cancel()
	i, err := client.Inspect(ctx, name)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(view.JSON(i, owners))
	}
	return detail(a.Out, i)
}

// detail writes all that is known of a name.
func detail(out io.Writer, i holdfast.Inspection) error {
	text := fmt.Sprintf("%s: %s", view.Name(i.Name), i.Kind)
	switch i.Kind {
	case holdfast.KindMutex, holdfast.KindRWLock, holdfast.KindLeader, holdfast.KindFree, holdfast.KindUnknown:
	case holdfast.KindOnce:
		text += ", " + i.State
	default:
		text += ", " + view.State(i)
	}
	text += "\n"
	for _, h := range i.Holders {
		text += fmt.Sprintf("  held by  %s", view.Holder(h))
		if alone := h.Write || i.Kind != holdfast.KindRWLock; alone && !i.HeldSince.IsZero() {
			text += fmt.Sprintf(", since %s (%s)", i.HeldSince.UTC().Format(time.RFC3339), view.Ago(i.HeldSince, i.At))
		}
		text += fmt.Sprintf(", %s left\n", view.Duration(h.Remaining))
	}
	if len(i.Holders) == 0 && view.Left(i) != view.None {
		text += fmt.Sprintf("  lasts    %s\n", view.Left(i))
	}
	if i.Waiters > 0 {
		text += fmt.Sprintf("  waiting  %d\n", i.Waiters)
	}
	for n, w := range i.Queue {
		text += fmt.Sprintf("  %5d.  %s", n+1, view.Waiter(w))
		if !w.Since.IsZero() {
			text += ", came " + view.Ago(w.Since, i.At)
		}
		text += "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}
