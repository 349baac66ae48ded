// One round: every server is asked at once, and their answers are a grant or a refusal.

package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
)

// round asks every member once. It returns the hold. If the grants are not enough, it gives them
// back and returns why. seen are the members, with the markers that were there before; round notes
// those that it finds.
func (q *Quorum) round(ctx context.Context, seen []*seenAt) (*majorityHold, error) {
	began, judged := time.Now(), undecided
	answers := each(ctx, seen, q.patience(), func(ctx context.Context, at *seenAt) answer {
		return q.ask(ctx, at, began)
	}, func(come []answer) bool {
		judged = q.judge(come)
		return judged != undecided
	})
	for i, a := range answers {
		if a.marker.asked {
			seen[i].marker = a.marker.text
		}
	}
	err := q.beginOrMarkLost(ctx, seen, answers)
	switch {
	case err != nil || judged == granted:
	case judged == grantedEarly:
		err = errBegun
	default:
		err = q.refusal(answers)
	}
	if err == nil {
		h, failure := q.grant(ctx, answers)
		if failure == nil {
			return h, nil
		}
		err = failure
	}
	q.giveBack(ctx, answers)
	return nil, err
}

// verdict is what the answers of a round come to.
type verdict int

const (
	undecided    verdict = iota // more answers may still be a grant or a refusal
	granted                     // a majority has granted
	grantedEarly                // a majority has granted, but some of these grants count only in the next round: see answer.early
	refused                     // another holds so many that no majority is left
)

// judge returns the verdict on the answers that have come. A refusal of a server that was found
// empty says nothing yet: the server may be new, and only all servers together can say so.
func (q *Quorum) judge(come []answer) verdict {
	counts, early := count(come, answer.counts), count(come, answer.early)
	busy := count(come, func(a answer) bool {
		return errors.Is(a.err, errs.Busy) && a.marker.since != foundEmpty
	})
	switch {
	case counts >= q.majority():
		return granted
	case counts+early >= q.majority():
		return grantedEarly
	case busy > len(q.members)-q.majority():
		return refused
	default:
		return undecided
	}
}

// grant makes the hold of a majority that has granted. It writes the token to a majority, which
// must still be valid after that.
func (q *Quorum) grant(ctx context.Context, answers []answer) (*majorityHold, error) {
	h := &majorityHold{quorum: q, granted: time.Now()}
	var held []heldAt
	var spare []*lease.Lease
	for i, a := range answers {
		switch {
		case a.counts():
			held = append(held, heldAt{q.members[i], a.lease})
			h.members = append(h.members, a.lease)
			h.token = max(h.token, a.lease.Token())
		case a.lease != nil:
			spare = append(spare, a.lease)
		}
	}
	raised := func(written []error) int { return count(written, func(err error) bool { return err == nil }) }
	written := each(ctx, held, q.patience(), func(ctx context.Context, at heldAt) error {
		return at.member.raise(ctx, at.lease, h.token)
	}, func(come []error) bool { return raised(come) >= q.majority() })
	if n := raised(written); n < q.majority() {
		return nil, fmt.Errorf("the token was written to %d of %d: %w", n, len(q.members), errs.NoQuorum)
	}
	if !time.Now().Before(h.deadline()) {
		return nil, fmt.Errorf("granted, but too late: %w", errs.NoQuorum)
	}
	abandon(ctx, spare) // granted by servers that do not count
	return h, nil
}

type heldAt struct {
	member Member
	lease  *lease.Lease
}

func (q *Quorum) refusal(answers []answer) error {
	grants, busy := 0, 0
	var finals []error
	for _, a := range answers {
		switch {
		case a.counts() || a.early():
			grants++
		case errors.Is(a.err, errs.Busy):
			busy++
		case final(a.err):
			finals = append(finals, a.err)
		}
	}
	n, majority := len(answers), q.majority()
	text := fmt.Sprintf("%d of %d granted, %d needed (%s)", grants, n, majority, q.servers(answers))
	switch {
	case len(finals) > n-majority:
		return errs.Several(text, finals)
	case busy > 0 && grants+busy >= majority:
		return fmt.Errorf("%s: %w", text, errs.Busy)
	default:
		// The servers' errors are in it only as words. The error of a try that took too long would
		// otherwise match as if it were the caller's.
		return fmt.Errorf("%s: %w", text, errs.NoQuorum)
	}
}

// final reports whether asking again would get the same error.
func final(err error) bool {
	for _, kind := range []error{errs.Closed, errs.WrongType, errs.OutOfMemory, errs.Denied, errs.BadArgument, errs.Upgrade, errs.Released} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
