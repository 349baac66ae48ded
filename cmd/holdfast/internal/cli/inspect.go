// holdfast inspect: one name in detail.

package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/audit"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

func (a *app) inspect() *cobra.Command {
	var owners bool
	cmd := &cobra.Command{
		Use:   "inspect NAME...",
		Short: "Show who holds a name, who waits for it, and for how long",
		Long: lines(
			"Show what stands at each NAME: its kind, each holder, each of the first hundred waiters in their order,",
			"what is counted, and how long that lasts if nobody renews or releases it; and who has released it by force",
			"within a day. It only reads.",
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
	forced := a.forcedOf(ctx, i)
	if a.json {
		return a.printJSON(inspectJSON{view.JSON(i, owners), forced})
	}
	if err := a.detail(i); err != nil {
		return err
	}
	_, err = io.WriteString(a.Out, view.Forced(forced, i.At))
	return err
}

// inspectJSON is what inspect prints in JSON.
type inspectJSON struct {
	view.Inspection
	Forced []audit.Record `json:"forced"` // null: not known
}

// detail prints all that is known of a name.
func (a *app) detail(i holdfast.Inspection) error {
	_, err := io.WriteString(a.Out, view.Detail(i))
	return err
}
