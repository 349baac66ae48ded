// Patterns, as SCAN has them, for names that are no keys.

package inspect

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
	not := len(pattern) > 0 && pattern[0] == '^'
	if not {
		pattern = pattern[1:]
	}
	for len(pattern) > 0 && pattern[0] != ']' {
		switch {
		case pattern[0] == '\\' && len(pattern) > 1:
			in = in || pattern[1] == c
			pattern = pattern[2:]
		case len(pattern) > 2 && pattern[1] == '-':
			low, high := min(pattern[0], pattern[2]), max(pattern[0], pattern[2])
			in = in || low <= c && c <= high
			pattern = pattern[3:]
		default:
			in = in || pattern[0] == c
			pattern = pattern[1:]
		}
	}
	if pattern != "" {
		pattern = pattern[1:]
	}
	return in != not, pattern
}
