// What acquire prints can be read by a shell.

package cli

import "testing"

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
