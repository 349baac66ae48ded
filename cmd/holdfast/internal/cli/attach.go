// holdfast attach: a program under a lock that acquire has taken.

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/holdfast-go/holdfast"
)

func (a *app) attach() *cobra.Command {
	r := &running{app: a, busyCode: codeBusy}
	var owner string
	cmd := &cobra.Command{
		Use:   "attach NAME --owner OWNER [flags] [--] COMMAND [ARGUMENT]...",
		Short: "Run a program under a lock that acquire has taken",
		Long: `Take over the lock NAME that "holdfast acquire" took under OWNER, and run a program under it as "holdfast run" does:
the lock is renewed while the program runs, and released after it.`,
		Example: `  eval "$(holdfast acquire migration --lease 10m)"
  ./prepare
  holdfast attach "$HOLDFAST_LOCK" --owner "$HOLDFAST_OWNER" ./migrate`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			r.name, r.command, err = thenCommand(cmd, args)
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			id, err := holdfast.ParseOwner(owner)
			if err != nil {
				return usage(fmt.Errorf("--owner: %w", err))
			}
			r.from = &id
			return r.exitCode(cmd.Context())
		},
	}
	a.asFlag(cmd)
	r.supervision.flags(cmd)
	r.bounded = func() bool { return false }
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&owner, "owner", "", "the owner that acquire printed")
	_ = cmd.MarkFlagRequired("owner") // which fails for flags that there are not
	return cmd
}

// takesOver returns what takes over the lock that the owner holds.
func takesOver(m *holdfast.Mutex, owner holdfast.Owner) taker {
	attach := func(ctx context.Context) (holding, error) {
		l, err := as(m.Attach(ctx, owner))
		if errors.Is(err, holdfast.ErrLost) {
			return nil, &exit{codeBusy, err} // nothing was lost here
		}
		return l, err
	}
	return taker{wait: attach, try: attach}
}
