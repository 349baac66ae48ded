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
	l := w.lock(w.locker(a, holdfast.Renewed(length)))
	held, first := l.Context(context.Background()), l.Deadline()
	time.Sleep(length + time.Second)
	w.lasts(l)
	if held.Err() != nil || !l.Deadline().After(first) {
		w.Errorf("the context has ended: %v; the deadline was %v, and is %v", context.Cause(held), first, l.Deadline())
	}
	w.busy(w.rival(b))
	w.release(l)
	w.free(w.rival(b))
}

// endedTouchesNobody shows that a fixed lease ends before the next one is in, and that neither what was
// lost nor what was released touches the next one.
func endedTouchesNobody(w *stage) {
	const fixed = 3 * time.Second
	a, b, c := w.process(), w.process(), w.process()
	lost := w.lock(w.locker(a, holdfast.Fixed(fixed)))
	held := lost.Context(context.Background())
	if lost.Deadline().After(time.Now().Add(fixed)) {
		w.Errorf("a lease of %v lasts until %v", fixed, lost.Deadline())
	}
	next := w.goLock(w.patient(), w.rival(b))
	r := w.granted(next)
	if early := lost.Deadline().Sub(next.at); early > 0 {
		w.Errorf("the next one is in %v before the deadline", early)
	}
	w.ended(lost, holdfast.ErrLost)
	w.endedBy(held, holdfast.ErrLost)
	before := w.state()
	for range 2 {
		err := lost.Release(w.patient())
		if w.matches("Release", err, holdfast.ErrLost); errors.Is(err, holdfast.ErrReleased) {
			w.Errorf("Release of what was lost: %v", err)
		}
	}
	w.matches("Extend", lost.Extend(w.patient(), time.Minute), holdfast.ErrLost)
	if after := w.state(); after != before {
		w.Errorf("the release of what was lost changed\n%sto\n%s", before, after)
	}
	w.lasts(r)
	w.busy(w.locker(c))

	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.Release(ended); err != nil {
		w.Errorf("Release with a context that has ended: %v", err)
	}
	l := w.lock(w.locker(c))
	for range 2 {
		w.matches("Release, again", r.Release(w.patient()), holdfast.ErrReleased)
	}
	w.lasts(l)
	w.busy(w.rival(a))
	w.release(l)
	w.free(w.rival(a))
}

// state returns everything that is in Redis, if no other test uses that Redis.
func (w *stage) state() string {
	if !w.s.Virtual {
		return ""
	}
	return redistest.Snapshot(w, w.site.Onlooker)
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
	if child.Err() != nil || sibling.Err() != nil || child.Value(contextKey{}) != "kept" {
		w.Errorf("the contexts say %v and %v, and the parent's values are %v", child.Err(), sibling.Err(), child.Value(contextKey{}))
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
	for _, by := range []time.Duration{30 * time.Second, time.Second} { // the second shortens nothing
		if err := l.Extend(w.patient(), by); err != nil {
			w.Fatalf("Extend: %v", err)
		}
		if d := time.Until(l.Deadline()); d < 29*time.Second || d > 30*time.Second {
			w.Errorf("%v left of 30 s", d)
		}
	}
	w.matches("Extend by next to nothing", l.Extend(w.patient(), time.Millisecond), holdfast.ErrBadArgument)
	time.Sleep(28 * time.Second)
	w.lasts(l)
	w.busy(w.rival(b))
	w.release(l)
	w.matches("Extend of what was released", l.Extend(w.patient(), time.Second), holdfast.ErrReleased)
	w.free(w.rival(b))
}

func maxHold(w *stage) {
	const most = 300 * time.Millisecond
	a, b := w.process(), w.process()
	asked := time.Now()
	l := w.lock(w.locker(a, holdfast.MaxHold(most)))
	held := l.Context(context.Background())
	w.ended(l, holdfast.ErrMaxHold)
	if d := time.Since(asked); d < most || d > most+10*time.Millisecond {
		w.Errorf("ended after %v", d)
	}
	w.endedBy(held, holdfast.ErrMaxHold)
	w.matches("Release", l.Release(w.patient()), holdfast.ErrMaxHold)
	w.soonFree(w.rival(b))
}

// atLeast shows that a lock that is to stay is free at its time, and no sooner. Kinds that cannot do that say so.
func atLeast(w *stage) {
	const stay = 3 * time.Second
	a, b := w.process(), w.process()
	l := w.lock(w.locker(a))
	asked := time.Now()
	err := l.AtLeast(w.patient(), stay)
	answered := time.Now()
	if !w.s.Stays {
		w.matches("AtLeast", err, holdfast.ErrBadArgument)
		w.release(l)
		w.soonFree(w.rival(b))
		return
	}
	if err != nil {
		w.Fatalf("AtLeast: %v", err)
	}
	w.release(l)
	w.matches("Err", l.Err(), holdfast.ErrReleased)
	next := w.goLock(w.patient(), w.rival(b))
	w.release(w.granted(next))
	if early := asked.Add(stay).Sub(next.at); early > 0 {
		w.Errorf("granted %v too early", early)
	}
	w.promptly("the next was granted", answered.Add(stay), next.at)
}

// takenByForce shows that a holder that watches knows long before its next renewal, in 20 minutes, that its lock was
// taken away, whichever server the message goes by.
func takenByForce(w *stage) {
	a, b := w.process(), w.process()
	l := w.lock(w.locker(a, holdfast.Renewed(time.Hour), holdfast.Notified()))
	held := l.Context(context.Background())
	if took, err := b.Mutex(l.Name()).ForceRelease(w.patient()); !took || err != nil {
		w.Fatalf("force release: %v (%v)", took, err)
	}
	w.await("the news", held.Done())
	w.endedBy(held, holdfast.ErrLost)
	w.matches("Err", l.Err(), holdfast.ErrLost)
	w.free(w.rival(b))
}

// superseded shows that a holder hears of an Ask, and gives way to a newer Lock, which then has the lock.
func superseded(w *stage) {
	a, b := w.process(), w.process()
	l := w.lock(w.locker(a, holdfast.Supersede()))
	held := l.Context(context.Background())
	if asked, err := b.Mutex(l.Name()).Ask(w.patient()); !asked || err != nil {
		w.Fatalf("ask: %v (%v)", asked, err)
	}
	w.await("that somebody asks", l.Asked())
	w.matches("Err", l.Err(), nil)
	next := w.goLock(w.patient(), w.locker(b, holdfast.Supersede()))
	w.await("the newer Lock", held.Done())
	w.endedBy(held, holdfast.ErrSuperseded)
	w.matches("Release", l.Release(w.patient()), holdfast.ErrSuperseded)
	newest := w.granted(next)
	if newest.Token() <= l.Token() {
		w.Errorf("token %d after %d", newest.Token(), l.Token())
	}
	w.release(newest)
}
