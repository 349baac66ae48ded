// What the servers answered, in words for an error.

package quorum

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// words says in a few words what one server answered. The name of the lock, and what was done to
// it, are said once for all servers.
func (q *Quorum) words(a answer) string {
	switch {
	case a.counts() || a.early():
		return "granted"
	case errors.Is(a.err, errQuarantine):
		left := q.longest
		if a.marker.since == quorumBegan || a.marker.since == dataLost { // else the time begins with this round
			left -= a.marker.age
		}
		return fmt.Sprintf("new, or has lost its data: counts in %v", max(left, 0).Round(time.Second))
	case errors.Is(a.err, errs.Busy):
		return errs.Busy.Error()
	}
	return errs.Plain(errs.Bare(a.err))
}

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
