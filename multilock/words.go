// The errors of several locks, in one line.

package multilock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// several is an error of several locks. It matches what its causes match.
type several struct {
	text   string
	causes []error
}

func (s several) Error() string   { return s.text }
func (s several) Unwrap() []error { return s.causes }

// inOneLine returns the errors as one error, which says only once what several of them say.
func inOneLine(all []error) error {
	var words []string
	for _, err := range all {
		words = append(words, errs.Plain(err))
	}
	slices.Sort(words)
	return several{strings.Join(slices.Compact(words), "; "), all}
}

// words says in a few words what one server answered. The name of the lock, and what was done to
// it, are said once for all servers.
func (q *Quorum) words(a answer) string {
	switch {
	case a.counts() || a.early():
		return "granted"
	case errors.Is(a.err, errQuarantine):
		left := q.longest
		if a.marker.since == fresh || a.marker.since == lost { // else the time begins with this round
			left -= a.marker.age
		}
		return fmt.Sprintf("new, or has lost its data: counts in %v", max(left, 0).Round(time.Second))
	case errors.Is(a.err, errs.Busy):
		return errs.Busy.Error()
	}
	return errs.Plain(errs.Bare(a.err))
}

// servers says in a few words what each server answered.
func (q *Quorum) servers(answers []answer) string {
	all := make([]string, len(answers))
	for i, a := range answers {
		server, _ := serverOf(q.members[i].Engine)
		if server == "" {
			server = fmt.Sprintf("server %d", i)
		}
		all[i] = server + ": " + q.words(a)
	}
	return strings.Join(all, "; ")
}
