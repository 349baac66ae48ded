// The text of a server's error, without the parts that only help in the server's own log.

package fault

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// explanation wraps a server's error and gives it another text.
type explanation struct {
	error
	text string
}

func (e explanation) Error() string { return e.text }
func (e explanation) Unwrap() error { return e.error }

var commandIn = regexp.MustCompile(`redis\.p?call\(["'](\w+)["']`)

// Explained removes the place in the script from a Redis error. If Redis refuses a command without
// naming it, because the user lacks the right or because there is no such command, explained adds
// the command at that place. script is the text of the script that was refused; "" if there is none.
func Explained(err error, script string) error {
	if !IsReply(err) {
		return err
	}
	text, line := said(err)
	text, command := namedBy(text)
	if bare, _, found := strings.Cut(text, ", with args beginning with:"); found && IsUnknownCommand(err) {
		return explanation{err, bare} // the arguments are keys and owners
	}
	if line == "" && command == "" {
		return err
	}
	if (deniedInside(err) || IsUnknownCommand(err)) && !strings.Contains(text, " '") {
		if name := cmp.Or(command, commandAt(script, line)); name != "" {
			text += " ('" + name + "')"
		}
	}
	return explanation{err, text}
}

// namedBy returns an error's text without the command that a script has added to it, and that command; "" if
// there is none. A script that undoes what it did adds the command because it returns the error afterwards,
// without the place.
func namedBy(text string) (bare, command string) {
	at := strings.LastIndex(text, " ('")
	if at < 0 || !strings.HasSuffix(text, "')") {
		return text, ""
	}
	return text[:at], strings.ToLower(text[at+len(" ('") : len(text)-len("')")])
}

// commandAt returns the command that a script runs on that line, or those among which it is; "" if there is
// none.
func commandAt(script, line string) string {
	n, err := strconv.Atoi(line)
	if err != nil {
		return ""
	}
	lines := strings.Split(script, "\n")
	if n < 1 || n > len(lines) {
		return ""
	}
	var names []string
	for _, found := range commandIn.FindAllStringSubmatch(lines[n-1], -1) {
		if name := strings.ToLower(found[1]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, "' or '")
}
