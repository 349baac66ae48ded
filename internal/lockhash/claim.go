// The claims of Locks with Supersede, of which the newest is served.

package lockhash

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/hold"
)

var (
	claimScript    = conn.NewScript("lock/claim", lua("claim"))
	withdrawScript = conn.NewScript("lock/withdraw", lua("withdraw"), conn.Always)
)

// claim is the claim of one Lock. It is used by one goroutine at a time.
type claim struct {
	queue *Queue
	as    hold.Owner
	came  int64 // when it was named, on the server's clock; 0: it is not, as far as is known
	late  int64 // the not-after of requests whose reply was never heard; 0: there are none
}

// NewClaim implements hold.Asked.
func (q *Queue) NewClaim() hold.Claim {
	return &claim{queue: q, as: hold.NewOwner(q.Engine.NewOwner())}
}

// Name implements hold.Claim.
func (c *claim) Name(ctx context.Context) error {
	q, at := c.queue, c.queue.At()
	call := &conn.Call{
		Script: claimScript,
		Keys:   []string{q.space().NewestAt(q.Key()), at.Hash},
		Enough: 1,
		Args:   []any{c.as.String(), c.came, q.claimLife(), q.Engine.Publish(ctx), at.Grant},
	}
	err := q.Engine.Conn.Run(ctx, call)
	if notAfter, unheard := call.Outstanding(); unheard {
		c.late = max(c.late, notAfter)
	}
	if err != nil {
		return err
	}
	came, newest := claimed(call)
	if !newest {
		return errs.Superseded
	}
	c.came = came
	return nil
}

// Withdraw implements hold.Claim.
func (c *claim) Withdraw(limit time.Duration) {
	if c.came == 0 && c.late == 0 {
		return
	}
	q := c.queue
	q.Engine.Settle(c.late, limit, func(ctx context.Context) (*conn.Call, error) {
		call := &conn.Call{
			Script:  withdrawScript,
			Keys:    []string{q.space().NewestAt(q.Key())},
			Args:    []any{c.as.String(), q.claimLife()},
			Cleanup: true,
		}
		return call, q.Engine.Conn.Run(ctx, call)
	})
}

// claimLife returns how long Redis keeps the list of the newest, in ms: as long as a token that has an end.
func (q *Queue) claimLife() int64 { return hold.RemadeLife(q.tokenLife) }
