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

var (
	// scriptTail is the end of an error inside a script in Redis 7: the script's hash and the
	// line.
	scriptTail = regexp.MustCompile(` script: [0-9a-f]+, on @user_script:(\d+)\.$`)
	// scriptHead is the beginning of such an error in Redis 6.
	scriptHead = regexp.MustCompile(`^ERR Error running script \(call to f_[0-9a-f]+\): @user_script:(\d+): (?:@user_script: \d+: )?-?`)
	commandIn  = regexp.MustCompile(`redis\.p?call\(["'](\w+)["']`)
)

// explained removes the place in the script from a Redis error. If Redis refuses a right
// without naming the command, explained adds the command at that place.
func explained(err error, s *Script) error {
	if err == nil || !isReply(err) {
		return err
	}
	text := err.Error()
	line := ""
	if at := scriptTail.FindStringSubmatch(text); at != nil {
		line, text = at[1], strings.TrimSuffix(text, at[0])
	} else if at := scriptHead.FindStringSubmatch(text); at != nil {
		line, text = at[1], strings.TrimPrefix(text, at[0])
	} else {
		return err
	}
	if deniedInside(err) && !strings.Contains(text, " '") {
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
