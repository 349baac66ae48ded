// Values that would do less than they seem to: an empty "$TICK" in a script, or a time below zero.

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// sound returns an error if an argument or a flag has a value that would be as if it were not given: nothing, or less
// than no time. What is a program's own is left alone.
func sound(cmd *cobra.Command, args []string) (err error) {
	if strings.Contains(cmd.Use, "COMMAND") && len(args) > 1 {
		args = args[:1]
	}
	if slices.Contains(args, "") {
		return errors.New("an argument is empty")
	}
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
