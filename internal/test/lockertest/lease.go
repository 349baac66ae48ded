// These cases are about a lease: how long it lasts, and how it ends.

package lockertest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func renewedOutlivesItsLease(w *stage) {
	a, b := w.process(), w.process()
	l := w.lock(w.locker(a, holdfast.Renewed(6*time.Second)))
	held := l.Context(context.Background())
	first := l.Deadline()
	select {
	case <-l.Done():
		w.Fatalf("the lease has ended: %v", l.Err())
	case <-time.After(6600 * time.Millisecond):
	}
	w.lasts(l)
	if held.Err() != nil {
		w.Errorf("the context has ended: %v", context.Cause(held))
	}
	if !l.Deadline().After(first) {
		w.Error("the deadline stays where it was")
	}
	w.busy(w.rival(b))
	w.release(l)
	w.free(w.rival(b))
}

func fixedEndsBeforeTheKey(w *stage) {
	const length = 2 * time.Second
	a, b := w.process(), w.process()
	asked := time.Now()
	l := w.lock(w.locker(a, holdfast.Fixed(length)))
	held := l.Context(context.Background())
	if d := l.Deadline().Sub(asked); d > time.Since(asked)+length {
		w.Errorf("the deadline is %v after the call", d)
	}
	// The rival is granted the lock when the key is gone. The rival asks all the time, so that the
	// test knows the moment.
	for ctx := w.patient(); ; {
		r, err := w.rival(b).TryLock(ctx)
		granted := time.Now()
		if err == nil {
			if granted.Before(l.Deadline()) {
				w.Errorf("the next one is in %v before the deadline", l.Deadline().Sub(granted))
			}
			if w.s.Virtual {
				w.matches("Err when the next one is in", l.Err(), holdfast.ErrLost)
			}
			w.release(r)
			break
		}
		w.matches("TryLock", err, holdfast.ErrBusy)
		time.Sleep(5 * time.Millisecond)
	}
	w.ended(l, holdfast.ErrLost)
	w.endedBy(held, holdfast.ErrLost)
	w.matches("Release", l.Release(w.patient()), holdfast.ErrLost)
}

func releasedTwice(w *stage) {
	a, b := w.process(), w.process()
	l := w.lock(w.locker(a))
	w.release(l)
	r := w.lock(w.rival(b))
	for range 2 {
		w.matches("Release, again", l.Release(w.patient()), holdfast.ErrReleased)
	}
	w.lasts(r)
	w.busy(w.locker(a))
	w.release(r)
}

// releaseAfterLoss shows that a holder that has lost its lease does not touch the next holder.
func releaseAfterLoss(w *stage) {
	a, b, c := w.process(), w.process(), w.process()
	l := w.lock(w.locker(a, holdfast.Fixed(2*time.Second)))
	r := w.lock(w.rival(b, holdfast.Fixed(time.Minute))) // waits for the expiry
	w.ended(l, holdfast.ErrLost)
	before := w.state()
	for range 2 {
		err := l.Release(w.patient())
		w.matches("Release", err, holdfast.ErrLost)
		if errors.Is(err, holdfast.ErrReleased) {
			w.Errorf("Release of what was lost: %v", err)
		}
	}
	w.matches("Extend", l.Extend(w.patient(), time.Minute), holdfast.ErrLost)
	if after := w.state(); after != before {
		w.Errorf("the release of what was lost changed\n%sto\n%s", before, after)
	}
	w.lasts(r)
	w.busy(w.locker(c))
	w.release(r)
	w.free(w.locker(c))
}

// state returns everything that is in Redis, if no other test uses that Redis.
func (w *stage) state() string {
	if !w.s.Virtual {
		return ""
	}
	return redistest.Snapshot(w, w.site.Onlooker)
}

func releaseWithAnEndedContext(w *stage) {
	a, b := w.process(), w.process()
	l := w.lock(w.locker(a))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Release(ctx); err != nil {
		w.Errorf("Release: %v", err)
	}
	w.free(w.rival(b))
}

type contextKey struct{}

// causes checks what Err, Done and Context say before the lease ends and after.
func causes(w *stage) {
	c := w.process()
	l := w.lock(w.locker(c))
	parent, cancel := context.WithCancel(context.WithValue(context.Background(), contextKey{}, "kept"))
	defer cancel()
	child, sibling := l.Context(parent), l.Context(context.Background())
	w.lasts(l)
	for _, ctx := range []context.Context{child, sibling} {
		if err := ctx.Err(); err != nil {
			w.Errorf("the context has ended: %v", err)
		}
	}
	if child.Value(contextKey{}) != "kept" {
		w.Error("the parent's values are gone")
	}
	if l.Owner().IsZero() || time.Until(l.Deadline()) <= 0 {
		w.Errorf("owner %v, deadline %v", l.Owner().Short(), l.Deadline())
	}
	cancel()
	w.endedBy(child, context.Canceled)
	w.lasts(l) // the end of a parent context does not end the lease
	w.release(l)
	w.ended(l, holdfast.ErrReleased)
	w.endedBy(sibling, holdfast.ErrReleased)
	w.matches("error", sibling.Err(), context.Canceled)
	w.endedBy(l.Context(context.Background()), holdfast.ErrReleased) // made after the end
}

func extend(w *stage) {
	a, b := w.process(), w.process()
	l := w.lock(w.locker(a, holdfast.Fixed(5*time.Second)))
	if err := l.Extend(w.patient(), 30*time.Second); err != nil {
		w.Fatalf("Extend: %v", err)
	}
	if d := time.Until(l.Deadline()); d < 15*time.Second || d > 30*time.Second {
		w.Errorf("%v left of 30 s", d)
	}
	far := l.Deadline()
	if err := l.Extend(w.patient(), time.Second); err != nil {
		w.Errorf("Extend by less: %v", err)
	}
	if l.Deadline().Before(far) {
		w.Errorf("shortened by %v", far.Sub(l.Deadline()))
	}
	w.matches("Extend by next to nothing", l.Extend(w.patient(), time.Millisecond), holdfast.ErrBadArgument)
	time.Sleep(5200 * time.Millisecond) // longer than the lease was at first
	w.lasts(l)
	w.busy(w.rival(b))
	w.release(l)
	w.matches("Extend of what was released", l.Extend(w.patient(), time.Second), holdfast.ErrReleased)
	w.free(w.rival(b))
}

func maxHold(w *stage) {
	a, b := w.process(), w.process()
	asked := time.Now()
	l := w.lock(w.locker(a, holdfast.Renewed(6*time.Second), holdfast.MaxHold(300*time.Millisecond)))
	held := l.Context(context.Background())
	w.ended(l, holdfast.ErrMaxHold)
	if d := time.Since(asked); d < 295*time.Millisecond { // in ticks, from when the lease was asked for
		w.Errorf("ended after %v", d)
	}
	w.endedBy(held, holdfast.ErrMaxHold)
	w.matches("Release", l.Release(w.patient()), holdfast.ErrMaxHold)
	w.soonFree(w.rival(b))
}
