// How the leases on servers are given back.

package quorum

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/lease"
)

// giveBack releases what a round was granted, in the background. It waits for a server that does not
// answer no longer than a round does.
func (q *Quorum) giveBack(ctx context.Context, answers []answer) {
	var leases []*lease.Lease
	for _, a := range answers {
		if a.lease != nil {
			leases = append(leases, a.lease)
		}
	}
	q.release(ctx, leases, allOf)
}

// release releases leases on members in the background. It waits until enough returns true, but no
// longer than a round does. In what it returns, nil stands for a member that is free, and
// errPending for one that did not answer in time.
func (q *Quorum) release(ctx context.Context, leases []*lease.Lease, enough func([]error) bool) []error {
	return each(ctx, leases, q.patience(), func(ctx context.Context, l *lease.Lease) error {
		select {
		case err := <-(*hold.Lease)(l).GiveBack(ctx):
			return err
		case <-ctx.Done():
			return errPending
		}
	}, enough)
}

var errPending = fmt.Errorf("not answered yet: %w", context.DeadlineExceeded)

// abandon releases leases on members in the background, and waits for none.
func abandon(ctx context.Context, leases []*lease.Lease) {
	for _, l := range leases {
		(*hold.Lease)(l).GiveBack(ctx)
	}
}
