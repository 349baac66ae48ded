package cli

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// No flag of any command takes an empty text, or a time below zero, for not being given: a script with an empty variable
// would go on without what it asks for.
func TestNoValueFailsOpen(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			for _, value := range []string{"", "-1s"} {
				if value != "" && f.Value.Type() != "duration" {
					continue
				}
				if c.Flags().Set(f.Name, value) == nil && sound(c, nil) == nil {
					t.Errorf("%s --%s=%q is taken", c.CommandPath(), f.Name, value)
				}
				_ = c.Flags().Set(f.Name, f.DefValue)
				f.Changed = false
			}
		})
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk((&app{}).root())
}

// What acquire prints can be read by a shell.
func TestShellWord(t *testing.T) {
	for text, want := range map[string]string{
		"orders:42": "orders:42", "": "''", "a b": "'a b'", "it's": `'it'\''s'`,
		"$(rm)": "'$(rm)'", "a\nb": "'a\nb'", "~": "'~'", "{x}": "'{x}'",
	} {
		if got := shellWord(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
