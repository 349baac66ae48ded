// What came of several locks, in one line.

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

// inOneLine returns the errors as one, which says but once what they have in common.
func inOneLine(all []error) error {
	var words []string
	for _, err := range all {
		words = append(words, bare(err))
	}
	slices.Sort(words)
	return several{strings.Join(slices.Compact(words), "; "), all}
}

// prefix is what each error of Holdfast begins with.
const prefix = "holdfast: "

// bare returns an error's text as a part of another's.
func bare(err error) string {
	return strings.ReplaceAll(strings.TrimPrefix(err.Error(), prefix), "\n"+prefix, "; ")
}

// wrap adds to the error of one lock what was being done to all of them.
func wrap(what string, err error) error {
	return several{prefix + what + ": " + bare(err), []error{err}}
}

// words says in a few words what came of asking one server: the lock's name and what was
// done to it are said of all.
func (q *Quorum) words(a answer) string {
	switch {
	case a.counts():
		return "granted"
	case errors.Is(a.err, errQuarantine):
		left := q.longest
		if a.marker.since != missing {
			left -= a.marker.age
		}
		return fmt.Sprintf("new, or has lost its data: counts in %v", max(left, 0).Round(time.Second))
	case errors.Is(a.err, errs.Busy):
		return errs.Busy.Error()
	}
	err := a.err
	for strings.HasPrefix(err.Error(), prefix) && errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return strings.ReplaceAll(bare(err), "\n", "; ")
}

// servers says of each server in a few words what came of asking it.
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
