// One round: every server is asked at once, and their answers are a grant or a refusal.

package multilock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

const (
	// longestTry is the longest that a round waits for a server. If leases are short it waits less:
	// a tenth of the longest lease.
	longestTry = 500 * time.Millisecond
	// grace is how long, at the least, a round still waits for the rest when it is decided. A
	// healthy server has answered by then, and each additional member that is held can make up for
	// one that is lost later.
	grace = 10 * time.Millisecond
)

// round asks every member once. It returns the hold. If the grants are not enough, it gives them
// back and returns why. seen are the members, with the markers that were there before; round notes
// those that it finds.
func (q *Quorum) round(ctx context.Context, seen []*seenAt) (*quorumHold, error) {
	began := time.Now()
	granted, early, busy := 0, 0, 0
	answers := each(ctx, seen, q.patience(), func(ctx context.Context, at *seenAt) answer {
		return q.ask(ctx, at, began)
	}, func(a answer) bool {
		switch {
		case a.counts():
			granted++
		case a.early():
			early++
		case errors.Is(a.err, errs.Busy) && a.marker.since != empty: // else it may be new, which all must say
			busy++
		}
		return granted+early >= q.majority() || busy > len(q.members)-q.majority()
	})
	for i, a := range answers {
		if a.marker.asked {
			seen[i].marker = a.marker.text
		}
	}
	err := q.look(ctx, seen, answers)
	switch {
	case err != nil || granted >= q.majority():
	case granted+early >= q.majority():
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

// grant makes the hold of a majority that has granted. It writes the token to a majority, which
// must still be valid after that.
func (q *Quorum) grant(ctx context.Context, answers []answer) (*quorumHold, error) {
	h := &quorumHold{quorum: q, granted: time.Now()}
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
	raised := 0
	each(ctx, held, q.patience(), func(ctx context.Context, at heldAt) error {
		return at.member.raise(ctx, at.lease, h.token)
	}, func(err error) bool {
		if err == nil {
			raised++
		}
		return raised >= q.majority()
	})
	if raised < q.majority() {
		return nil, fmt.Errorf("the token was written to %d of %d: %w", raised, len(q.members), errs.NoQuorum)
	}
	if !time.Now().Before(h.deadline()) {
		return nil, fmt.Errorf("granted, but too late: %w", errs.NoQuorum)
	}
	startRelease(ctx, spare) // granted by servers that do not count
	return h, nil
}

// heldAt is a member and the lease on it.
type heldAt struct {
	member Member
	lease  *lease.Lease
}

// refusal returns why the answers are no grant.
func (q *Quorum) refusal(answers []answer) error {
	granted, busy := 0, 0
	var finals []error
	for _, a := range answers {
		switch {
		case a.counts() || a.early():
			granted++
		case errors.Is(a.err, errs.Busy):
			busy++
		case final(a.err):
			finals = append(finals, a.err)
		}
	}
	n, majority := len(answers), q.majority()
	text := fmt.Sprintf("%d of %d granted, %d needed (%s)", granted, n, majority, q.servers(answers))
	switch {
	case len(finals) > n-majority:
		return several{text, finals}
	case busy > 0 && granted+busy >= majority:
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

// giveBack releases what was granted, in the background. It waits for a server that does not answer
// no longer than a round does.
func (q *Quorum) giveBack(ctx context.Context, answers []answer) {
	var leases []*lease.Lease
	for _, a := range answers {
		if a.lease != nil {
			leases = append(leases, a.lease)
		}
	}
	q.release(ctx, leases, func(error) bool { return false })
}

// release releases leases on members in the background. It waits until decided returns true, but no
// longer than a round does. In what it returns, nil stands for a member that is free, and
// errPending for one that did not answer in time.
func (q *Quorum) release(ctx context.Context, leases []*lease.Lease, decided func(error) bool) []error {
	return each(ctx, leases, q.patience(), func(ctx context.Context, l *lease.Lease) error {
		select {
		case err := <-(*hold.Lease)(l).GiveBack(ctx):
			return err
		case <-ctx.Done():
			return errPending
		}
	}, decided)
}

var errPending = fmt.Errorf("not answered yet: %w", context.DeadlineExceeded)

// patience returns how long one round waits for a server.
func (q *Quorum) patience() time.Duration { return min(q.longest/10, longestTry) }

// each calls do for each of some things, all at the same time, and returns the results when all
// calls have returned. When patience is over, the context of the calls ends. When decided says of a
// result that those so far are enough, it ends too: after as long again as they took, and grace at
// the least.
func each[A, B any](ctx context.Context, of []A, patience time.Duration, do func(context.Context, A) B, decided func(B) bool) []B {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type result struct {
		i int
		b B
	}
	began, results := time.Now(), make(chan result, len(of))
	for i, a := range of {
		go func() { results <- result{i, do(ctx, a)} }()
	}
	all := make([]B, len(of))
	enough := false
	for range of {
		r := <-results
		all[r.i] = r.b
		if !enough && decided(r.b) {
			enough = true
			stop := time.AfterFunc(max(grace, time.Since(began)), cancel)
			defer stop.Stop()
		}
	}
	return all
}
