// How a quorum begins, and how a server that has lost its data is known from then on.

package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// errBegun says that the quorum has begun since a round began, or may have. The round does not count.
// A server may have granted, restarted without its data, and been marked as new, and so count for
// what it has forgotten; or another server, which did not count when the first restarted, may count
// now. The next round counts, as it finds the markers that this one has seen.
var errBegun = errors.New("the quorum has just begun")

// beginLimit is how long after the first marker of a new quorum the last one may
// still be on its way: a request does nothing after conn.Window.
const beginLimit = 2 * time.Second

// beginOrMarkLost deals with servers that were found without a marker. If none of the servers had
// one, the quorum begins, and it returns errBegun. Otherwise those without a marker have lost their
// data, and are marked as lost.
func (q *Quorum) beginOrMarkLost(ctx context.Context, seen []*seenAt, answers []answer) error {
	doubtful, all := q.doubts(answers)
	switch {
	case all:
		return q.begin(ctx, seen)
	case len(doubtful) > 0:
		each(ctx, doubtful, q.patience(), func(ctx context.Context, m Member) error {
			_, err := m.mark(ctx, marking{write: dataLost, set: q.set})
			return err
		}, allOf)
	}
	return nil
}

// doubts returns the servers that are to be marked as lost. If all servers were found without a
// marker, it returns none, and all is true.
func (q *Quorum) doubts(answers []answer) (doubtful []Member, all bool) {
	without := 0
	for i, a := range answers {
		if a.marker.since == foundEmpty {
			without++
		}
		if a.marker.since == foundEmpty || q.setBack(a.marker) {
			doubtful = append(doubtful, q.members[i])
		}
	}
	switch {
	case without == len(q.members):
		return nil, true
	case slices.ContainsFunc(answers, answer.beginning):
		return nil, false // other callers may be about to mark the rest as new
	default:
		return doubtful, false
	}
}

// setBack reports whether the clock of the marker's server was set back: by that clock the marker's
// time is still to come.
func (q *Quorum) setBack(m marker) bool { return m.asked && m.age < 0 && !m.beganOn(q.set) }

// beginning reports whether a quorum, of whichever servers, has just begun with the member.
func (a answer) beginning() bool {
	m := a.marker
	return m.since == quorumBegan && m.age >= 0 && m.age < beginLimit
}

// begin marks all servers as new. They have answered one after another, so it first asks all of them
// again: if each still has the marker that it had, then none counted at the time in between, and so
// no lock was held. A server that loses its data after that does not have this marker any more. So
// it is not marked as new, however late the request comes.
func (q *Quorum) begin(ctx context.Context, seen []*seenAt) error {
	again := each(ctx, seen, q.patience(), func(ctx context.Context, at *seenAt) error {
		m, err := at.member.mark(ctx, marking{set: q.set})
		if err == nil && m.text != at.marker {
			err = errBegun // by another, or it is found to be no beginning
		}
		return err
	}, allOf)
	for _, err := range again {
		if err != nil {
			return q.notBegun(again)
		}
	}
	marked := each(ctx, seen, q.patience(), func(ctx context.Context, at *seenAt) error {
		m, err := at.member.mark(ctx, marking{write: quorumBegan, set: q.set, replace: at.marker})
		if err == nil {
			at.marker = m.text
		}
		return err
	}, allOf)
	if slices.Contains(marked, nil) {
		return errBegun
	}
	return q.notBegun(marked)
}

// notBegun returns the error of a quorum that did not begin, made from the failures of its servers.
// It returns errBegun if the quorum has begun without this caller.
func (q *Quorum) notBegun(failures []error) error {
	failures = slices.DeleteFunc(failures, func(err error) bool { return err == nil })
	var finals []error
	for _, err := range failures {
		switch {
		case errors.Is(err, errBegun):
			return errBegun
		case final(err):
			finals = append(finals, err)
		}
	}
	text := fmt.Sprintf("the quorum cannot begin: %v", errs.InOneLine(failures))
	if len(finals) > len(q.members)-q.majority() {
		return errs.Several(text, finals)
	}
	return fmt.Errorf("%s: %w", text, errs.NoQuorum)
}
