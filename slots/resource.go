// A number as package hold sees it: its calls, and how its callers wait.

package slots

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/line"
)

const kind = "slots" // for errors, spans and metrics

// markLife is how long a waiter's mark counts after the waiter has last refreshed it. A waiter asks at
// least once in each line.PollBound, and so refreshes its mark three times in that time.
const markLife = 3 * line.PollBound

// resource is one number of the slots, for one acquisition. The goroutine that acquires makes the calls of
// hold.Concluding.
type resource struct {
	*Slots
	since time.Time // since when the caller asks
	waits bool      // it waits, and does not only try
	again bool      // it has asked before; it asks again only as the head of its line
	lost  bool      // what it was granted has been lost

	asked *conn.Call // the last request
}

var (
	_ hold.Concluding = (*resource)(nil)
	_ hold.Marking    = (*resource)(nil)
	_ hold.Losing     = (*resource)(nil)
)

func (r *resource) Kind() string { return kind }
func (r *resource) Name() string { return r.name }
func (r *resource) Key() string  { return r.at.Taken }

func (r *resource) Describe(w *line.Want) {
	w.Key, w.Channel, w.Grant = r.at.Taken, r.at.Channel, line.Shared
}

// marks returns two arguments of the script, about the caller's turn: how many ms it has waited, -1 if it only tries;
// and for how many ms its mark is to count. A caller that asks for the first time leaves none, since it may come to
// stand behind others of its process, where it cannot ask. With a mark, a waiter of another process might wait for it,
// while those before it in the line wait for that waiter.
func (r *resource) marks() (waited, life int64) {
	if !r.waits {
		return -1, 0
	}
	if r.again {
		life = markLife.Milliseconds()
	}
	r.again = true
	return time.Since(r.since).Milliseconds(), life
}

// Marks implements hold.Marking.
func (r *resource) Marks() bool { return r.waits }

func (r *resource) Acquire(owner hold.Owner, length time.Duration) *conn.Call {
	waited, life := r.marks()
	r.asked = &conn.Call{
		Script: acquireScript,
		Keys:   []string{r.at.Taken, r.at.Token, r.at.Waiting, r.at.Alive},
		Args: []any{owner.String(), length.Milliseconds(), r.size, r.prefer, r.quarantine.Milliseconds(),
			r.settings.TokenKept().Milliseconds(), waited, life},
	}
	return r.asked
}

// Recount is Renew: nobody re-enters a number, so there is never more than one lease on it.
func (r *resource) Recount(owner hold.Owner, _ int, length time.Duration) *conn.Call {
	return r.Renew(owner, length)
}

// Renew needs only one key. So it goes on in a slot of a cluster that is on the move.
func (r *resource) Renew(owner hold.Owner, length time.Duration) *conn.Call {
	return &conn.Call{
		Script: renewScript,
		Keys:   []string{r.at.Taken},
		Args:   []any{owner.String(), length.Milliseconds()},
	}
}

func (r *resource) Release(owner hold.Owner, publish string) *conn.Call {
	lost := 0
	if r.lost {
		lost = 1
	}
	return &conn.Call{
		Script: releaseScript,
		Keys:   []string{r.at.Taken, r.at.Waiting, r.at.Alive},
		Enough: 1,
		Args:   []any{owner.String(), publish, r.at.Channel, lost},
	}
}

// AfterLoss implements hold.Losing: what was lost goes into quarantine.
func (r *resource) AfterLoss() hold.Resource { return &resource{Slots: r.Slots, lost: true} }

// Refused implements hold.Concluding: nobody waits while the holders say that there are more numbers, or
// fewer.
func (r *resource) Refused(call *conn.Call) error {
	if size := sizeIn(call); size != 0 {
		return fmt.Errorf("%d numbers, but its holders say that there are %d: %w", r.size, size, errs.BadArgument)
	}
	return nil
}

// Heard implements line.Hearer. Every message says that a number has come free.
func (r *resource) Heard(string) error { return nil }

// Concludes implements hold.Concluding.
func (r *resource) Concludes() bool { return false }
