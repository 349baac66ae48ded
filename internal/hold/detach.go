// Handing a hold to another process: Detach and Attach.

package hold

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
)

// Detach is Detach of lease.Lease.
func (l *Lease) Detach(ctx context.Context) (Owner, error) {
	if l.absent() {
		return Owner{}, noLease("detach")
	}
	owner, err := l.detach(ctx)
	return owner, l.hold.error("detach", err)
}

func (l *Lease) detach(ctx context.Context) (Owner, error) {
	h := l.hold
	if _, ok := h.resource.(Movable); !ok {
		return Owner{}, fmt.Errorf("this kind cannot be attached to: %w", errs.BadArgument)
	}
	if err := h.take(ctx); err != nil {
		return Owner{}, err
	}
	defer h.give()
	if err := l.refresh(ctx); err != nil {
		return Owner{}, err
	}

	h.mu.Lock()
	if l.ended != notYet || h.count > 1 {
		ended := l.because()
		h.mu.Unlock()
		if ended == nil {
			ended = fmt.Errorf("other leases are on the same hold: %w", errs.BadArgument)
		}
		return Owner{}, ended
	}
	h.finish(l, byRelease)
	h.gone = true
	if h.seldom != nil {
		h.seldom.stays = 0 // who attaches releases as they like
	}
	h.mu.Unlock()
	h.engine.StaysBehind()
	giveUpSeat(h.engine, h.resource, h.leave(), 0)
	h.active(-1)
	l.tell()
	return h.owner(), nil
}

// refresh renews the hold once more. It then waits until no late request can make the hold anew
// after it has been detached.
func (l *Lease) refresh(ctx context.Context) error {
	h := l.hold
	for {
		h.mu.Lock()
		ended, length := l.because(), h.needs().renewal
		h.mu.Unlock()
		if ended != nil {
			return ended
		}
		call := l.prolonging(h.resource.Renew(h.owner(), length))
		if err := h.renewedBy(ctx, call); err != nil {
			return err
		}
		left := time.Duration(h.lateUntil()-call.ServerTime()) * time.Microsecond
		if left < 0 {
			return nil
		}
		if err := engine.Sleep(ctx, left+time.Millisecond); err != nil {
			return err
		}
	}
}

// renewedBy runs a call that renews the hold. If Redis answers that the hold is not there,
// renewedBy ends it.
func (h *hold) renewedBy(ctx context.Context, call *conn.Call) error {
	err := h.engine.Conn.Run(ctx, call)
	if l, gone := goneBy(err, call.Status() == conn.Done); gone {
		return h.endAll(l)
	}
	return err
}

// Movable is a Resource whose hold can move from one owner to another.
type Movable interface {
	Resource
	// Move moves the hold from one owner to the other, leaves one lease on it, and makes its time
	// to live no less than length. The reply is Done with the time to live in ms and the token,
	// even if the hold had moved before; or Refused if neither owner holds it.
	Move(from, to Owner, length time.Duration) *conn.Call
}

// Attach takes over the hold that Detach left under the owner from, and returns a lease on it.
//
// The hold moves to a new owner. So if several callers attach, only one of them gets it, and the
// others find it lost. If an Attach fails, but may have moved the hold, it moves the hold back in
// the background. Until then, for up to a second, another Attach finds the hold lost too.
func Attach(ctx context.Context, e *engine.Engine, r Movable, from Owner, s Settings) (*Lease, error) {
	l, err := attach(ctx, e, r, from, s)
	if err != nil {
		return nil, OpError("attach", r, err)
	}
	return l, nil
}

func attach(ctx context.Context, e *engine.Engine, r Movable, from Owner, s Settings) (*Lease, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	if from.IsZero() {
		return nil, fmt.Errorf("no owner: %w", errs.BadArgument)
	}
	if err := e.Begin(); err != nil {
		return nil, err
	}
	defer e.Done()
	e.Present()
	// The user's function for groups may block, so it is called before anything has moved.
	kind := e.Telemetry.Kind(r.Kind(), r.Name())
	a := acquisition{engine: e, resource: r, settings: s, kind: kind, ofWork: ofWork(ctx, e)}
	if a.turnedAway() {
		return nil, errs.Closed
	}
	a.ofWork = true // what it moves is held, so from here on Shutdown waits for it
	to := NewOwner(e.NewOwner())
	call := r.Move(from, to, s.Length)
	call.Replicas = s.Replicas
	err := e.Conn.Run(ctx, call)
	notAfter, moved := call.Outstanding() // it may have moved, if a sending was not answered
	var l *Lease
	switch {
	case err != nil:
	case call.Status() != conn.Done:
		return nil, fmt.Errorf("owner %s: %w", from.Short(), errs.Lost)
	case call.Short():
		moved, err = true, call.Shortage()
	default:
		// A sending that is still on its way will find that the hold has moved.
		a.owner, a.grant = to, grantOf(call)
		l, err = a.begin()
		moved = true
	}
	if err != nil && moved {
		moveBack(e, r, to, from, notAfter, s.Length) // the work goes on elsewhere
	}
	return l, err
}

// moveBack undoes an Attach that was given up, so that another Attach can succeed.
func moveBack(e *engine.Engine, r Movable, from, to Owner, notAfter int64, length time.Duration) {
	e.Settle(notAfter, settleLimit(length), func(ctx context.Context) (*conn.Call, error) {
		call := r.Move(from, to, 0)
		call.Cleanup = true
		return call, e.Conn.Run(ctx, call)
	})
}
