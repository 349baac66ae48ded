// These cases are about what is held longer than its work: AtLeast, and Shutdown.

package lockertest

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

// atLeast shows that a lock that is to stay is free at its time, and no sooner. Kinds that cannot do
// that say so.
func atLeast(w *stage) {
	const stay = 2 * time.Second
	a, b := w.process(), w.process()
	l := w.lock(w.locker(a, holdfast.Renewed(6*time.Second)))
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
	w.busy(w.rival(a))
	next := w.goLock(w.patient(), w.rival(b))
	got, err := w.result(next)
	if err != nil {
		w.Fatalf("Lock: %v", err)
	}
	if early := asked.Add(stay).Sub(next.at); early > 0 {
		w.Inexcusable("granted %v too early", early)
	}
	w.promptly("the next was granted", answered.Add(stay), next.at)
	w.release(got)
}

// shutdown shows that a Client that shuts down ends what waits, and keeps what is held until it is
// released.
func shutdown(w *stage) {
	a, b := w.process(), w.process()
	l := w.lock(w.locker(a, holdfast.Renewed(2*time.Second)))
	waiting := w.goLock(w.patient(), w.rival(a))
	w.waits(waiting, 200*time.Millisecond)
	over := make(chan error, 1)
	go func() { over <- a.Shutdown(w.patient()) }()
	_, err := w.result(waiting)
	w.matches("Lock that waits", err, holdfast.ErrClosed)
	_, err = w.rival(a).TryLock(w.patient())
	w.matches("TryLock", err, holdfast.ErrClosed)
	select {
	case err := <-over:
		w.Fatalf("Shutdown returned while a lock is held: %v", err)
	case <-time.After(2500 * time.Millisecond): // longer than the lease: it is renewed
	}
	w.lasts(l)
	w.busy(w.rival(b))
	w.release(l)
	select {
	case err := <-over:
		if err != nil {
			w.Errorf("Shutdown: %v", err)
		}
	case <-time.After(patience):
		w.Fatal("Shutdown does not return")
	}
	w.free(w.rival(b))
}
