// holdfast run: a program under a lock.

package cli

import "github.com/spf13/cobra"

func (a *app) run() *cobra.Command {
	return &cobra.Command{Use: "run NAME -- COMMAND [ARGUMENT]..."}
}
