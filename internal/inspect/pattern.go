// Patterns, as SCAN has them, for names that are no keys.

package inspect

// matches reports whether text matches a pattern of Redis: * any bytes, ? one byte, [a-z] one of a set,
// [^a-z] one that is not in it, and a backslash before what stands for itself.
func matches(pattern, text string) bool {
	for pattern != "" {
		switch pattern[0] {
		case '*':
			for rest := pattern[1:]; ; text = text[1:] {
				if matches(rest, text) {
					return true
				}
				if text == "" {
					return false
				}
			}
		case '[':
			if text == "" {
				return false
			}
			in, rest := inSet(pattern[1:], text[0])
			if !in {
				return false
			}
			pattern, text = rest, text[1:]
			continue
		case '?':
			if text == "" {
				return false
			}
		default:
			if pattern[0] == '\\' && len(pattern) > 1 {
				pattern = pattern[1:]
			}
			if text == "" || text[0] != pattern[0] {
				return false
			}
		}
		pattern, text = pattern[1:], text[1:]
	}
	return text == ""
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
