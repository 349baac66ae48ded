// Values of flags that would do less than they seem to: an empty "$TICK" in a script, or a time below zero.

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// sound returns an error if a flag of the command line is given a value that would be as if it were not given: nothing,
// or less than no time.
func sound(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		text := f.Value.String()
		if list, ok := f.Value.(pflag.SliceValue); ok {
			text = "some"
			if all := list.GetSlice(); len(all) == 0 || slices.Contains(all, "") {
				text = ""
			}
		}
		switch {
		case err != nil:
		case text == "":
			err = fmt.Errorf("--%s is empty", f.Name)
		case f.Value.Type() == "duration" && strings.HasPrefix(text, "-"):
			err = fmt.Errorf("--%s %s is less than no time", f.Name, text)
		}
	})
	return err
}
