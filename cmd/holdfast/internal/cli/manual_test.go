// The manual pages, and docs/cli.md, which says all that the commands can.

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Each command and each flag is in docs/cli.md, in the part about that command.
func TestTheDocumentHasEachFlag(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/cli.md")
	redistest.Must(t, err)
	parts := make(map[string]string)
	for part := range strings.SplitSeq(string(text), "\n## ") {
		names, _, _ := strings.Cut(part, "\n")
		for _, name := range strings.FieldsFunc(names, func(r rune) bool { return r == ' ' || r == ',' }) {
			parts[name] += part
		}
	}
	root := (&app{}).root()
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		variable := "`HOLDFAST_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		has := strings.Contains(parts["connecting"], "--"+f.Name) && strings.Contains(parts["connecting"], variable)
		if !has && f.Name != "timeout" {
			t.Errorf("connecting does not say what --%s and its variable are", f.Name)
		}
	})
	for _, cmd := range root.Commands() {
		part, documented := parts[cmd.Name()]
		if !documented {
			t.Errorf("there is no part about %s", cmd.Name())
			continue
		}
		for _, c := range append([]*cobra.Command{cmd}, cmd.Commands()...) {
			if c != cmd && !strings.Contains(part, c.Name()) {
				t.Errorf("%s does not say what %s is", cmd.Name(), c.Name())
			}
			c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
				if !strings.Contains(part, "--"+f.Name) {
					t.Errorf("%s does not say what --%s is", c.CommandPath(), f.Name)
				}
			})
		}
	}
}

// Each page has the sections of a manual page, and each variable of the document is on one.
func TestManual(t *testing.T) {
	dir := t.TempDir()
	root := (&app{}).root()
	root.SetArgs([]string{"manual", dir})
	redistest.Must(t, root.Execute())
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	redistest.Must(t, err)
	for _, cmd := range root.Commands() {
		page := filepath.Join(dir, "holdfast-"+cmd.Name()+".1")
		if !slices.Contains(pages, page) && cmd.Name() != "help" {
			t.Errorf("%s has no page", cmd.Name())
		}
	}
	document, err := os.ReadFile("../../../../docs/cli.md")
	redistest.Must(t, err)
	variables := regexp.MustCompile(`HOLDFAST_[A-Z_]+`).FindAllString(string(document), -1)
	var all strings.Builder
	for _, page := range pages {
		text, err := os.ReadFile(page)
		redistest.Must(t, err)
		title := strings.ToUpper(strings.TrimSuffix(filepath.Base(page), ".1"))
		for _, part := range []string{`.TH "` + title + `" "1" `, ".SH ENVIRONMENT\n", ".SH FILES\n", ".SH EXIT STATUS\n", `\fB69\fP`, "HOLDFAST_URL"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %q", page, part)
			}
		}
		if strings.Contains(string(text), "Auto generated") || strings.Contains(string(text), `=""`) {
			t.Errorf("%s shows by what it was made", page)
		}
		all.Write(text)
	}
	for _, name := range variables {
		if !strings.Contains(all.String(), `\fB`+name+`\fP`) {
			t.Errorf("no page says what %s is", name)
		}
	}
}
