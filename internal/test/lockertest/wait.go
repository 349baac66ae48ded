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
		for try := 0; try < 20 && best > wakeBound; try++ {
			l := w.lock(w.rival(a))
			next := w.goLock(w.patient(), w.locker(waiter))
			w.waits(next, 200*time.Millisecond) // the waiter would sleep for 700 ms more
			released := time.Now()
			w.release(l)
			w.release(w.granted(next))
			best = min(best, next.at.Sub(released))
		}
		if best > wakeBound {
			w.Errorf("in %v after the release at best: not woken by it", best)
		}
	}
}

// waitsEnd shows that a wait ends when its context ends, and that no other wait ends with it.
func waitsEnd(w *stage) {
	a, b := w.process(), w.process()
	l := w.lock(w.rival(a))
	locker := w.locker(b)
	cancelled, cancel := context.WithCancel(context.Background())
	timed, stop := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer stop()
	given, late, stays := w.goLock(cancelled, locker), w.goLock(timed, locker), w.goLock(w.patient(), locker)
	w.waits(given, 300*time.Millisecond)
	cancel()
	at := time.Now()
	w.refused(given, holdfast.ErrBusy, context.Canceled)
	w.refused(late, holdfast.ErrBusy, context.DeadlineExceeded)
	if deadline, _ := timed.Deadline(); !given.at.Equal(at) || !late.at.Equal(deadline) {
		w.Errorf("cancelled %v late, and the deadline noticed %v late", given.at.Sub(at), late.at.Sub(deadline))
	}
	w.waits(stays, 50*time.Millisecond)
	w.release(l)
	w.release(w.granted(stays))
	for _, ctx := range []context.Context{cancelled, timed} { // which have ended already
		_, err := locker.Lock(ctx)
		w.matches("Lock", err, ctx.Err())
		_, err = locker.TryLock(ctx)
		w.matches("TryLock", err, ctx.Err())
	}
	w.soonFree(w.rival(a))
}

// shutdown shows that a Client that shuts down ends what waits, and keeps what is held until it is released.
func shutdown(w *stage) {
	a, b := w.process(), w.process()
	l := w.lock(w.locker(a, holdfast.Renewed(length)))
	waiting := w.goLock(w.patient(), w.rival(a))
	w.waits(waiting, 200*time.Millisecond)
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := a.Shutdown(w.patient()); err != nil {
			w.Errorf("Shutdown: %v", err)
		}
	}()
	w.refused(waiting, holdfast.ErrClosed)
	_, err := w.rival(a).TryLock(w.patient())
	w.matches("TryLock", err, holdfast.ErrClosed)
	select {
	case <-over:
		w.Fatal("Shutdown returned while a lock is held")
	case <-time.After(length + time.Second): // it is renewed
	}
	w.lasts(l)
	w.busy(w.rival(b))
	w.release(l)
	w.await("Shutdown", over)
	w.free(w.rival(b))
}

// closing shows that Close ends waits and leases, and that Redis keeps the hold until its lease is over.
func closing(w *stage) {
	a, b := w.process(), w.process()
	l := w.lock(w.locker(a, holdfast.Renewed(length)))
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
	w.refused(waiting, holdfast.ErrClosed)
	w.matches("Release", l.Release(w.patient()), holdfast.ErrClosed)
	w.refused(w.goLock(w.patient(), w.locker(a)), holdfast.ErrClosed)
	_, err := w.locker(a).TryLock(w.patient())
	w.matches("TryLock", err, holdfast.ErrClosed)
	if err := a.Close(); err != nil {
		w.Errorf("Close, again: %v", err)
	}
	w.busy(w.rival(b))
	w.soonFree(w.rival(b))
	if time.Now().Before(l.Deadline()) {
		w.Error("free before the lease of its holder is over")
	}
	w.lasts(foreign)
	w.release(foreign)
}
