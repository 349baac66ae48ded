// Release: how a lease ends here, and how its hold is given up in Redis.

package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/conn"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/internal/telemetry"
)

// release is Release. unused says that no work is going on under the lease. release also returns how long the hold was
// held if it is over or passed on, otherwise telemetry.StillHeld.
func (l *Lease) release(unused bool) (held time.Duration, err error) {
	h := l.hold
	h.mu.Lock()
	if l.ended != notYet {
		return telemetry.StillHeld, l.releaseOver(unused)
	}
	begun := h.granted
	h.finish(l, byRelease)
	heir, held := h.makeHeir(l)
	last := h.count == 0 && !h.entering
	entering := h.count == 0 && h.entering
	h.gone = last
	h.mu.Unlock()

	l.tell() // before another holder can have it

	if heir != nil {
		passed, err := h.pass(heir, held)
		if passed || err != nil {
			return held, err
		}
		last = true
	}
	if last {
		held, err = h.over(begun)
	} else {
		held, err = telemetry.StillHeld, h.goOn(entering)
	}
	return held, h.error("release", err)
}

// releaseOver is the release of a lease that has ended. It returns how the lease ended. If what the lease was on may
// still be in Redis, and no other lease keeps it there, releaseOver gives it up, once; but after a Close only if it is
// unused. The caller holds the mutex; releaseOver gives it back.
func (l *Lease) releaseOver(unused bool) error {
	h := l.hold
	ended, why := l.ended, l.because()
	last := h.forgo(l)
	left := last && h.lost() != notYet && !h.seldom.freed && time.Now().Before(h.deadline)
	if left {
		h.seldom.freed = true
	}
	h.mu.Unlock()
	if left && (unused || ended != byClose) {
		h.settle(h.lateUntil()) // the lease ended before its key does
	}
	return h.error("release", why)
}

// over ends a hold whose last lease has been released: first here, then in Redis. It returns how
// long the hold has lasted since it was granted at begun, by the Client's age.
func (h *hold) over(begun time.Duration) (held time.Duration, err error) {
	seat := h.leave() // nothing is renewed from here on
	h.active(-1)
	held = h.engine.Age() - begun
	ctx, cancel := h.patience()
	defer cancel()
	err = h.free(ctx, seat)
	if err == nil && h.engine.Conn.Forgets() && h.staying() == 0 && !h.concludes() {
		e, r, owner := h.engine, h.resource, h.owner()
		e.Released(func() { giveUp(e, r, owner, 0, 0, 0) })
	}
	return held, err
}

// goOn takes one lease off a hold that goes on, because other leases are on it. Or it was the last, and a
// nested acquisition is about to add one (entering): if that fails, the hold ends here.
func (h *hold) goOn(entering bool) error {
	ctx, cancel := h.patience()
	defer cancel()
	if err := h.take(ctx); err != nil {
		h.correct(0)
		return err
	}
	defer h.give()
	h.mu.Lock()
	gone, lost := h.gone, h.because(h.lost())
	h.mu.Unlock()
	switch {
	case !entering || !gone:
		return h.recount(ctx)
	case lost != nil:
		return lost
	}
	if err := h.free(ctx, 0); !errors.Is(err, errs.Lost) {
		return err
	}
	return nil // the entry's own clean-up came first
}

// patience returns a context that bounds how long a release tries. After the deadline nothing is left
// to release.
func (h *hold) patience() (context.Context, context.CancelFunc) {
	until := h.until()
	switch left := time.Until(until); {
	case left >= engine.Grace:
		return h.engine.Grace(), func() {}
	case left >= time.Second: // a tenth of a second is little of it
		return h.engine.GraceUntil(until), func() {}
	default:
		return context.WithTimeout(context.Background(), max(left, MinLease))
	}
}

func (h *hold) until() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.deadline
}

// free releases the hold in Redis, unless AtLeast keeps it there. By the same request it gives up
// the process's seat if that is no longer needed, or takes a seat for the waiters of this process.
func (h *hold) free(ctx context.Context, seat int64) error {
	if left := h.staying(); left > 0 {
		h.engine.StaysBehind()
		giveUpSeat(h.engine, h.resource, seat, 0)
		return h.leaveBehind(ctx, left)
	}
	var joins int64
	if seats(h.resource) {
		joins = h.engine.Lines.TakeSeat(h.resource.Key())
	}
	unheard := false
	if seat == 0 && joins == 0 && h.late == nil {
		done, again, err := h.freeUnawaited(ctx)
		if done {
			return err
		}
		unheard = again
	}
	return h.freeWhole(ctx, seat, joins, unheard)
}

// freeWhole releases the hold by the script that looks at the queue. It gives up the place of the
// owner with the number seat and takes one for joins (0: none). unheard says that an earlier request
// may have freed it.
func (h *hold) freeWhole(ctx context.Context, seat, joins int64, unheard bool) error {
	call := releaseCall(ctx, h.engine, h.resource, h.owner(), seat, joins)
	err := h.engine.Conn.Run(ctx, call)
	late, again := call.Outstanding()
	var released Released
	if seats(h.resource) {
		released = h.resource.(Queueing).Released(call)
		h.noteLeft(released.Left)
	}
	if joins != 0 && h.engine.Lines.Seated(h.resource.Key(), joins, released.Seq) {
		giveUpSeat(h.engine, h.resource, joins, late)
	}
	if err != nil || call.Status() != conn.Done { // if another has taken it by force, the seat may have been handed it
		giveUpSeat(h.engine, h.resource, seat, 0)
	}
	if err == nil && h.late != nil && call.ServerTime() <= h.late.until {
		h.settle(h.late.until) // a late request could take the thing again
	}
	return h.outcome(call, err, unheard || again)
}

// noteLeft notes for whom a release has freed the resource.
func (h *hold) noteLeft(to Left) {
	switch to {
	case LeftToNobody:
	case LeftOpen:
		h.engine.Lines.NoteOpen(h.resource.Key())
	case LeftToAnother:
		h.engine.Lines.NoteShared(h.resource.Key())
	}
}

// freeUnawaited releases the hold by the cheapest script, unless somebody waits for it, or is known
// to have waited lately. If somebody does, it does nothing, and the whole release must follow. If
// anybody was listening, the next release is a whole one, because only a whole one can leave the
// lock to those outside the queue. unheard says that a request without a heard reply may have freed
// it all the same, before somebody came to wait.
func (h *hold) freeUnawaited(ctx context.Context) (done, unheard bool, err error) {
	q, ok := h.resource.(Queueing)
	if !ok || h.engine.Lines.Awaited(h.resource.Key()) {
		return false, false, nil
	}
	call := q.Free(h.owner(), h.engine.Publish(ctx))
	call.Cleanup = true
	err = h.engine.Conn.Run(ctx, call)
	_, unheard = call.Outstanding()
	if err != nil {
		return true, unheard, h.outcome(call, err, unheard)
	}
	defer h.engine.Smalls.Put(call)
	if q.Awaited(call) {
		h.engine.Lines.NoteAwaited(h.resource.Key())
	}
	if call.Status() == conn.Awaited {
		return false, unheard, nil
	}
	return true, unheard, h.outcome(call, nil, unheard)
}

// outcome returns the error of a release, or nil. unheard says that an earlier sending may have
// done the release.
func (h *hold) outcome(call *conn.Call, err error, unheard bool) error {
	l, gone := goneBy(err, true)
	switch {
	case gone:
		if h.late != nil {
			h.settle(h.late.until)
		}
		return h.foundGone(l)
	case err != nil:
		h.settle(h.lateUntil())
		return err
	case call.Status() == conn.Done && call.Short():
		return call.Shortage()
	case call.Status() == conn.Done || unheard && !h.concludes():
		return nil
	case unheard:
		return fmt.Errorf("nothing shows any more whether it was done: %w", errs.Unknown)
	default:
		return h.foundGone(notThere)
	}
}

// foundGone returns the error of a release that has found the hold lost.
func (h *hold) foundGone(l loss) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return l.error(h.engine.Age() - h.granted)
}

// settle goes on releasing in the background, until a release is answered after notAfter. For as long as AtLeast
// keeps the hold, it sets when the hold ends instead; after that a late request may have made it anew.
func (h *hold) settle(notAfter int64) {
	e, r, seat := h.engine, h.givenUp(), int64(0)
	if h.late != nil {
		seat = h.late.seat
	}
	if h.staying() > 0 && !e.Lines.HasSeat(r.Key(), seat) {
		giveUpSeat(e, r, seat, notAfter) // what keeps the hold leaves the seat
	}
	limit := settleLimit(time.Until(later(h.until(), h.keptUntil())))
	e.Settle(notAfter, limit, func(ctx context.Context) (*conn.Call, error) {
		call := giveUpCall(ctx, e, r, h.owner(), seat)
		if left := h.staying(); left > 0 {
			call = h.keep(left)
		}
		return call, e.Conn.Run(ctx, call)
	})
}

// settleAtItsEnd is settle, once the time of the hold is over: until then work may still be going on.
func (h *hold) settleAtItsEnd(notAfter int64) {
	h.engine.Background(func() {
		if engine.Sleep(h.engine.Closing(), time.Until(h.until())) == nil {
			h.settle(notAfter)
		}
	})
}
