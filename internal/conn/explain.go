// The words of a server's error, without what only the server's own log is for.

package conn

import (
	"regexp"
	"strconv"
	"strings"
)

// explanation is an error of a server in other words. It wraps that error.
type explanation struct {
	error
	text string
}

func (e explanation) Error() string { return e.text }
func (e explanation) Unwrap() error { return e.error }

var (
	// scriptTail is how Redis 7 ends an error inside a script: with the script's hash and
	// the line.
	scriptTail = regexp.MustCompile(` script: [0-9a-f]+, on @user_script:(\d+)\.$`)
	// scriptHead is how Redis 6 begins one.
	scriptHead = regexp.MustCompile(`^ERR Error running script \(call to f_[0-9a-f]+\): @user_script:(\d+): (?:@user_script: \d+: )?-?`)
	commandIn  = regexp.MustCompile(`redis\.p?call\(["'](\w+)["']`)
)

// explained takes the place in the script out of an error of Redis, and puts in the
// command that is there, where Redis refuses a right without saying for which command.
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

// commandAt returns the command that the script runs on that line; "" if that is not plain.
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
