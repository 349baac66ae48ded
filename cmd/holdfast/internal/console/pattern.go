// The pattern: which names the console has anything to do with, matched as Redis matches them.

package console

import (
	"strings"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/view"
)

// within reports whether the console has anything to do with a name.
func (s *Server) within(name string) bool { return s.Pattern == "" || matches(s.Pattern, name) }

// outside says why a name is refused.
func (s *Server) outside(name string) string {
	return view.Name(name) + " is not a name of this console, which is for " + view.Name(s.Pattern) + " only"
}

// matches reports whether a text matches a pattern, byte by byte, as Redis's SCAN has it: with *, ?, [a-z], [^a-z],
// and \ before a byte that means itself.
func matches(pattern, text string) bool {
	var afterStar, retry string // where to go on if what comes after the last * does not match here
	for star := false; ; {
		if strings.HasPrefix(pattern, "*") {
			pattern = pattern[1:]
			star, afterStar, retry = true, pattern, text
			continue
		}
		if pattern == "" && text == "" {
			return true
		}
		if pattern != "" && text != "" {
			if rest, fits := one(pattern, text[0]); fits {
				pattern, text = rest, text[1:]
				continue
			}
		}
		if !star || retry == "" {
			return false
		}
		retry = retry[1:]
		pattern, text = afterStar, retry
	}
}

// one reports whether the beginning of a pattern, which is no *, stands for a byte, and returns what comes after it.
func one(pattern string, b byte) (rest string, fits bool) {
	switch {
	case pattern[0] == '?':
		return pattern[1:], true
	case pattern[0] == '[':
		return class(pattern[1:], b)
	case pattern[0] == '\\' && len(pattern) > 1:
		pattern = pattern[1:]
	}
	return pattern[1:], pattern[0] == b
}

// class reads a class of bytes, and returns what comes after its ], and whether a byte is in it. Without a ] it goes on
// to the end of the pattern.
func class(pattern string, b byte) (rest string, found bool) {
	not := len(pattern) > 0 && pattern[0] == '^'
	if not {
		pattern = pattern[1:]
	}
	for {
		switch {
		case pattern == "":
			return "", found != not
		case pattern[0] == ']':
			return pattern[1:], found != not
		case pattern[0] == '\\' && len(pattern) >= 2:
			found = found || pattern[1] == b
			pattern = pattern[2:]
		case len(pattern) >= 3 && pattern[1] == '-':
			low, high := min(pattern[0], pattern[2]), max(pattern[0], pattern[2])
			found = found || low <= b && b <= high
			pattern = pattern[3:]
		default:
			found = found || pattern[0] == b
			pattern = pattern[1:]
		}
	}
}
