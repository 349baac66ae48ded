// The manual pages, made from the commands' own words.

package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (a *app) manual() *cobra.Command {
	return &cobra.Command{
		Use:   "manual DIRECTORY",
		Short: "Write the manual pages, one for each command",
		Long: "Write the manual pages, one for each command, into a directory that exists:\n\n" +
			"  holdfast manual /usr/local/share/man/man1",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return doc.GenManTree(cmd.Root(), &doc.GenManHeader{Title: "HOLDFAST", Section: "1"}, args[0])
		},
	}
}
