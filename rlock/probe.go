// Tries out the rights that the lock needs.

package rlock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/lockhash"
)

// probeLife is how long the token of a probe stays, and half of how long its lock may stay if the
// probe is cut short.
const probeLife = time.Second

// Probe does everything once that a Mutex does to Redis, with a lock that nobody else uses. It returns the
// first error. Client.Check calls it.
func Probe(ctx context.Context, e *engine.Engine, at keys.FairLock) error {
	r := newResource(e, at.Hash, at.Hash, new(hold.Settings))
	r.Rules = lockhash.NewRules(kind, probeLife, 0).Keeping(probeLife)
	owner, next, waiter := hold.NewOwner(e.NewOwner()), hold.NewOwner(e.NewOwner()), hold.NewOwner(e.NewOwner())
	for _, call := range []*conn.Call{
		r.Acquire(owner, probeLife),
		r.Enter(hold.Entry{Owner: waiter, Length: probeLife}),
		r.Recount(owner, 2, probeLife),
		r.Renew(owner, 2*probeLife),
		r.Move(owner, next, probeLife),
		r.State(),
		r.Release(next, "PUBLISH"),
		r.Release(waiter, "PUBLISH"),
	} {
		if err := e.Conn.Run(ctx, call); err != nil {
			return err
		}
	}
	return nil
}
