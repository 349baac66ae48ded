// These cases are about waiting, and about how a wait ends.

package lockertest

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
)

// releaseWakes shows that a release wakes a waiter, in another process and in another goroutine of
// the holder's process. The best of some tries counts: one late wake-up may be the machine's fault,
// but a waiter that only polls is late each time.
func releaseWakes(w *stage) {
	a, b := w.process(), w.process()
	for _, waiter := range []*holdfast.Client{a, b} {
		best := time.Hour
		for try := 0; try < 10 && best > wakeBound; try++ {
			l := w.lock(w.rival(a))
			next := w.goLock(w.patient(), w.locker(waiter))
			w.waits(next, 200*time.Millisecond) // the waiter would sleep for 700 ms more
			released := time.Now()
			w.release(l)
			lease, err := w.result(next)
			if err != nil {
				w.Fatalf("Lock: %v", err)
			}
			best = min(best, next.at.Sub(released))
			w.release(lease)
		}
		if best > wakeBound {
			w.Errorf("in %v after the release at best: not woken by it", best)
		}
	}
}

func waitEndsWithItsDeadline(w *stage) {
	a, b := w.process(), w.process()
	l := w.lock(w.rival(a))
	locker := w.locker(b)
	w.busy(locker) // so that the client is connected, and a message reaches it at once
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	deadline, _ := ctx.Deadline()
	lease, err := locker.Lock(ctx)
	returned := time.Now()
	if returned.Before(deadline) {
		w.Errorf("Lock returned %v before the deadline", deadline.Sub(returned))
	}
	w.promptly("Lock returned when its time was up,", deadline, returned)
	w.matches("Lock", err, holdfast.ErrBusy, context.DeadlineExceeded)
	if lease != nil {
		w.Error("a lease beside the error")
	}
	w.lasts(l)
	w.release(l)
	w.soonFree(w.rival(a))
}

func waitIsCancelled(w *stage) {
	a, b := w.process(), w.process()
	l := w.lock(w.rival(a))
	locker := w.locker(b)
	w.busy(locker) // so that the client is connected, and a message reaches it at once
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	given := w.goLock(ctx, locker)
	stays := w.goLock(w.patient(), locker)
	w.waits(given, 500*time.Millisecond)
	cancel()
	cancelled := time.Now()
	_, err := w.result(given)
	w.promptly("Lock returned when it was cancelled,", cancelled, given.at)
	w.matches("Lock", err, holdfast.ErrBusy, context.Canceled)
	w.waits(stays, 50*time.Millisecond)
	w.release(l)
	lease, err := w.result(stays)
	if err != nil {
		w.Fatalf("Lock of the waiter that was not cancelled: %v", err)
	}
	w.release(lease)
	w.soonFree(w.rival(a))
}

// soonFree is free, but it allows time for the clean-up after a wait that was given up.
func (w *stage) soonFree(l holdfast.Locker) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	lease, err := l.Lock(ctx)
	if err != nil {
		w.Errorf("Lock of what is free: %v", err)
		return
	}
	w.release(lease)
}

func contextThatHasEnded(w *stage) {
	c := w.process()
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	past, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	for _, ctx := range []context.Context{cancelled, past} {
		_, err := w.locker(c).Lock(ctx)
		w.matches("Lock", err, ctx.Err())
		_, err = w.locker(c).TryLock(ctx)
		w.matches("TryLock", err, ctx.Err())
	}
	w.soonFree(w.rival(c))
}

// closing shows that Close ends waits and leases, and that Redis keeps the hold until its lease is
// over.
func closing(w *stage) {
	a, b := w.process(), w.process()
	l := w.lock(w.locker(a, holdfast.Renewed(4*time.Second)))
	held := l.Context(context.Background())
	other := w.name + ":other"
	w.prepare(other)
	foreign := w.lock(w.s.Locker(b, other))
	waiting := w.goLock(w.patient(), w.s.rivalOf(a, other))
	w.waits(waiting, 100*time.Millisecond)

	if err := a.Close(); err != nil {
		w.Errorf("Close: %v", err)
	}
	w.ended(l, holdfast.ErrClosed)
	w.endedBy(held, holdfast.ErrClosed)
	_, err := w.result(waiting)
	w.matches("Lock under way", err, holdfast.ErrClosed)
	w.matches("Release", l.Release(w.patient()), holdfast.ErrClosed)
	_, err = w.locker(a).Lock(w.patient())
	w.matches("Lock", err, holdfast.ErrClosed)
	_, err = w.locker(a).TryLock(w.patient())
	w.matches("TryLock", err, holdfast.ErrClosed)
	if err := a.Close(); err != nil {
		w.Errorf("Close, again: %v", err)
	}
	if time.Until(l.Deadline()) > 0 { // unless the machine stood still
		lease, err := w.rival(b).TryLock(w.patient())
		if err == nil && time.Until(l.Deadline()) > 0 {
			w.Error("free as soon as its holder closed")
		}
		if err == nil {
			w.release(lease)
		}
	}
	w.soonFree(w.rival(b))
	w.lasts(foreign)
	w.release(foreign)
}
