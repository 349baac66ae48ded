// The text of a server's error, without the parts that only help in the server's own log.

package conn

import (
	"regexp"
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
	if bare, _, found := strings.Cut(text, ", with args beginning with:"); found && isUnknownCommand(err) {
		return explanation{err, bare} // the arguments are keys and owners
	}
	if line == "" {
		return err
	}
	if (deniedInside(err) || isUnknownCommand(err)) && !strings.Contains(text, " '") {
		if name := s.commandAt(line); name != "" {
			text += " ('" + name + "')"
		}
	}
	return explanation{err, text}
}

// commandAt returns the command that the script runs on that line; "" if there is none, or more
// than one.
func (s *Script) commandAt(line string) string {
	n, err := strconv.Atoi(line)
	if s == nil || err != nil {
		return ""
	}
	lines := strings.Split(s.source, "\n")
	if n < 1 || n > len(lines) {
		return ""
	}
	found := commandIn.FindAllStringSubmatch(lines[n-1], -1)
	if len(found) != 1 {
		return ""
	}
	return strings.ToLower(found[0][1])
}
