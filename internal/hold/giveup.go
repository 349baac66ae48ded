// Giving up, in the background, what requests may have taken and nobody wants any more.

package hold

import (
	"context"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
)

// undo reverts, in the background, what requests without a heard reply may have done or may still
// do, and what refused requests have left.
func (a *acquisition) undo() {
	if a.grant.token != 0 {
		// By now the process has its next place. A waiter may ask in that place and be granted the
		// thing, so giveUp leaves the place alone while the line has it.
		giveUp(a.engine, a.resource, a.owner, a.lateSeat, a.lateUntil, a.settings.Length)
		return
	}
	giveUp(a.engine, a.resource, a.owner, 0, a.lateUntil, a.settings.Length)
	giveUpSeat(a.engine, a.resource, a.lateSeat, a.lateUntil)
}

// giveUp releases, in the background, what owner may have of r, until a release is answered after
// notAfter. It also ends once the lease, which lasts for at most left, is over: then nothing is
// left to give up.
//
// It also takes the owner with the number seat (0: none) out of the queue: a late request that grants once
// more may put that owner there. The owner stays while it has the process's seat, because others of the
// process then wait in that place.
func giveUp(e *engine.Engine, r Resource, owner Owner, seat, notAfter int64, left time.Duration) {
	e.Settle(notAfter, settleLimit(left), func(ctx context.Context) (*conn.Call, error) {
		call := giveUpCall(ctx, e, r, owner, seat)
		return call, e.Conn.Run(ctx, call)
	})
}

func giveUpCall(ctx context.Context, e *engine.Engine, r Resource, owner Owner, seat int64) *conn.Call {
	if seat != 0 && e.Lines.HasSeat(r.Key(), seat) {
		seat = 0
	}
	return releaseCall(ctx, e, r, owner, seat, 0)
}

// settleLimit returns how long a clean-up goes on after requests that may leave a lease that lasts
// for left.
func settleLimit(left time.Duration) time.Duration {
	const late = 2 * conn.MaxWindow
	return min(max(left, 0), math.MaxInt64-late) + late
}

// releaseCall returns the call by which owner gives r up. In the same call, the owner with the
// number leaves gives up its place in the queue, and the owner with the number joins takes one. 0
// means that none does.
func releaseCall(ctx context.Context, e *engine.Engine, r Resource, owner Owner, leaves, joins int64) *conn.Call {
	publish := e.Publish(ctx)
	var call *conn.Call
	if leaves == 0 && joins == 0 {
		call = r.Release(owner, publish)
	} else {
		call = r.(Queueing).ReleaseAnd(owner, publish, ownerOf(e, leaves), ownerOf(e, joins))
	}
	call.Cleanup = true
	return call
}

// ownerOf returns the owner of this Client with that number, or the zero Owner if that is 0.
func ownerOf(e *engine.Engine, number int64) Owner {
	if number == 0 {
		return Owner{}
	}
	return NewOwner(e.Client(), number)
}
