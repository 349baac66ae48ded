// The errors of several locks as one.

package errs

import (
	"slices"
	"strings"
)

// several is an error of several locks. It matches what its causes match.
type several struct {
	text   string
	causes []error
}

func (s several) Error() string   { return s.text }
func (s several) Unwrap() []error { return s.causes }

// Several returns an error of that text, which matches what the causes match.
func Several(text string, causes []error) error { return several{text, causes} }

// InOneLine returns the errors as one error on one line. Its text has what several of them say only
// once.
func InOneLine(all []error) error {
	var words []string
	for _, err := range all {
		words = append(words, Plain(err))
	}
	slices.Sort(words)
	return Several(strings.Join(slices.Compact(words), "; "), all)
}
