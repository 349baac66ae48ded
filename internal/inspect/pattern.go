// Patterns, as SCAN has them, for names that are no keys.

package inspect

import "strings"

// Matches reports whether text matches a pattern of Redis: * any bytes, ? one byte, [a-z] one of a set,
// [^a-z] one that is not in it, and a backslash before what stands for itself.
func Matches(pattern, text string) bool {
	star, again, from := false, "", "" // what comes behind the last *, and from where it was tried last
	for {
		if pattern != "" && pattern[0] == '*' {
			star, again, from = true, pattern[1:], text
			pattern = again
			continue
		}
		if text == "" {
			return pattern == ""
		}
		if rest, ok := one(pattern, text[0]); ok {
			pattern, text = rest, text[1:]
			continue
		}
		if !star {
			return false
		}
		from = from[1:]
		pattern, text = again, from
	}
}

// one reports whether c matches what a pattern begins with, and returns the pattern behind that.
func one(pattern string, c byte) (rest string, ok bool) {
	if pattern == "" {
		return "", false
	}
	switch {
	case pattern[0] == '?':
		return pattern[1:], true
	case pattern[0] == '[':
		ok, rest = inSet(pattern[1:], c)
		return rest, ok
	case pattern[0] == '\\' && len(pattern) > 1:
		pattern = pattern[1:]
	}
	return pattern[1:], pattern[0] == c
}

// inSet reports whether c is in the set with which a pattern goes on after its [, and returns the pattern
// behind that set. A set without its ] goes to the end of the pattern.
func inSet(pattern string, c byte) (in bool, rest string) {
	rest, not := strings.CutPrefix(pattern, "^")
	for rest != "" && rest[0] != ']' {
		var low, high byte
		low, high, rest = span(rest)
		in = in || low <= c && c <= high
	}
	return in != not, strings.TrimPrefix(rest, "]")
}

// span returns the bytes from low to high with which a set goes on, and the set behind them.
func span(set string) (low, high byte, rest string) {
	switch {
	case set[0] == '\\' && len(set) > 1:
		return set[1], set[1], set[2:]
	case len(set) > 2 && set[1] == '-':
		return min(set[0], set[2]), max(set[0], set[2]), set[3:]
	default:
		return set[0], set[0], set[1:]
	}
}

// Single returns the name that a pattern stands for, if it stands for one: if it has no wildcard.
func Single(pattern string) (name string, single bool) {
	unescaped := strings.NewReplacer(`\*`, "", `\?`, "", `\[`, "", `\\`, "").Replace(pattern)
	if pattern == "" || strings.ContainsAny(unescaped, `*?[\`) {
		return "", false
	}
	return strings.NewReplacer(`\*`, "*", `\?`, "?", `\[`, "[", `\\`, `\`).Replace(pattern), true
}

// Literal returns the pattern that stands for one name, or one channel, whatever bytes it has.
func Literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}
