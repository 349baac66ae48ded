// The text of a server's error, without the parts that only help in the server's own log.

package conn

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

// explained removes the place in the script from a Redis error. If Redis refuses a command without
// naming it, because the user lacks the right or because there is no such command, explained adds
// the command at that place.
func explained(err error, s *Script) error {
	if err == nil || !isReply(err) {
		return err
	}
	text, line := said(err)
	text, command := namedBy(text)
	if bare, _, found := strings.Cut(text, ", with args beginning with:"); found && isUnknownCommand(err) {
		return explanation{err, bare} // the arguments are keys and owners
	}
	if line == "" && command == "" {
		return err
	}
	if (deniedInside(err) || isUnknownCommand(err)) && !strings.Contains(text, " '") {
		if name := cmp.Or(command, s.commandAt(line)); name != "" {
			text += " ('" + name + "')"
		}
	}
	return explanation{err, text}
}

// namedBy returns an error's text without the command that a script has added, and that command; "" if none has.
// A script that undoes what it did returns the error afterwards, without the place.
func namedBy(text string) (bare, command string) {
	at := strings.LastIndex(text, " ('")
	if at < 0 || !strings.HasSuffix(text, "')") {
		return text, ""
	}
	return text[:at], strings.ToLower(text[at+len(" ('") : len(text)-len("')")])
}

// commandAt returns the command that the script runs on that line, or those among which it is; "" if there is
// none.
func (s *Script) commandAt(line string) string {
	n, err := strconv.Atoi(line)
	if s == nil || err != nil {
		return ""
	}
	lines := strings.Split(s.source, "\n")
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
