// The manual pages, made from the commands' own words.

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

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
			return writeManual(cmd.Root(), args[0])
		},
	}
}

// writeManual writes the page of a command, and of each below it.
func writeManual(c *cobra.Command, dir string) error {
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() && !below.IsAdditionalHelpTopicCommand() {
			if err := writeManual(below, dir); err != nil {
				return err
			}
		}
	}
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	c.DisableAutoGenTag = true
	var page bytes.Buffer
	header := &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Source: "Holdfast", Manual: "Holdfast Manual"}
	if err := doc.GenMan(c, header, &page); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".1"), []byte(withSections(page.String(), c)), 0o644)
}

// withSections adds to a page the sections that every manual page has, before the other pages that it names.
func withSections(page string, c *cobra.Command) string {
	page = strings.ReplaceAll(page, `\fP=""`, `\fP`) // a flag without a default
	page, also, names := strings.Cut(page, ".SH SEE ALSO")
	page += ".SH ENVIRONMENT\n"
	for _, v := range environment {
		if v.of == "" || strings.Contains(" "+v.of+" ", " "+c.Name()+" ") {
			page += ".TP\n\\fB" + v.name + "\\fP\n" + v.text + "\n"
		}
	}
	page += ".SH FILES\nholdfast reads no file but those that its flags and variables name.\n.SH EXIT STATUS\n"
	for line := range strings.Lines(codesHelp) {
		code, text, coded := strings.Cut(strings.TrimSpace(line), "  ")
		if coded {
			page += ".TP\n\\fB" + code + "\\fP\n" + strings.TrimSpace(text) + "\n"
		}
	}
	if c.Name() == "held" {
		page += ".PP\nOf this command, 1 says that nobody holds the name, and 70 that it failed.\n"
	}
	if names {
		page += ".SH SEE ALSO" + also
	}
	return page
}

// environment are the variables that commands read, and that they give to programs. of names the commands; "": all.
var environment = []struct{ name, of, text string }{
	{"HOLDFAST_URL", "", "The Redis to use, if there is no --url."},
	{"HOLDFAST_PASSWORD", "", "Redis's password, if neither the URL nor a file has it."},
	{"HOLDFAST_PASSWORD_FILE", "", "As --password-file."},
	{"HOLDFAST_SENTINEL_PASSWORD", "", "The Sentinels' own password, if neither the URL nor a file has it."},
	{"HOLDFAST_SENTINEL_PASSWORD_FILE", "", "As --sentinel-password-file."},
	{"HOLDFAST_CA", "", "As --ca."},
	{"HOLDFAST_CERT", "", "As --cert."},
	{"HOLDFAST_KEY", "", "As --key."},
	{"HOLDFAST_SERVER_NAME", "", "As --server-name."},
	{"HOLDFAST_KEY_PREFIX", "", "As --key-prefix."},
	{"HOLDFAST_INSECURE", "", "As --insecure: true or false."},
	{"HOLDFAST_OWNER", "acquire extend release attach run",
		"The owner of a lock: what acquire and extend print, and what extend, release and attach use if there is no --owner."},
	{"HOLDFAST_CONSOLE_TOKEN", "console", "What a viewer must give, if there is no --token."},
	{"HOLDFAST_LOCK", "acquire extend run attach", "For programs and scripts: the name of the lock."},
	{"HOLDFAST_ELECTION", "leader", "For the program: the name of the election."},
	{"HOLDFAST_TOKEN", "acquire extend run attach leader", "For programs and scripts: the fencing token."},
	{"HOLDFAST_LEASE_UNTIL", "acquire extend run attach leader", "For programs and scripts: until when the lease lasts unless it is renewed."},
	{"HOLDFAST_WAITED", "run attach", "For the program: how long holdfast waited, in seconds."},
}
