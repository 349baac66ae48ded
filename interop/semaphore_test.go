// Both languages share one count of permits.

package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestOneCountOfPermits(t *testing.T) {
	everywhere(t, Last3, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		s := w.holdfast().Semaphore("tickets")
		available := func(want int) {
			t.Helper()
			if n, err := s.Available(w.ctx); err != nil || n != want {
				t.Errorf("Available() = %d, %v; want %d", n, err, want)
			}
			w.expect(fmt.Sprint(want), thread, "semaphore.available", "tickets")
		}

		w.expect("true", thread, "semaphore.set", "tickets", 5)
		if set, err := s.TrySetPermits(w.ctx, 7); err != nil || set {
			t.Errorf("TrySetPermits() = %v, %v", set, err)
		}
		w.do(thread, "semaphore.acquire", "tickets", 2)
		redistest.Must(t, s.Acquire(w.ctx, 2))
		available(1)
		w.expect("false", thread, "semaphore.tryAcquire", "tickets", 2, 0)
		redistest.Is(w.t, "TryAcquire()", s.TryAcquire(w.ctx, 2), holdfast.ErrBusy)
		// Nobody owns a permit: each language may give back what the other took.
		w.do(thread, "semaphore.release", "tickets", 2)
		redistest.Must(t, s.Release(w.ctx, 2))
		available(5)
		w.do(thread, "semaphore.add", "tickets", -7)
		available(-2)
		redistest.Must(t, s.AddPermits(w.ctx, 4))
		available(2)
		if n, err := s.Drain(w.ctx); err != nil || n != 2 {
			t.Errorf("Drain() = %d, %v", n, err)
		}
		w.expect("0", thread, "semaphore.drain", "tickets")
		available(0)
	})
}

// One release of several permits wakes as many waiters, Java threads and goroutines.
func TestAReleaseOfManyWakesAsMany(t *testing.T) {
	everywhere(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		releaser := redisson.Thread("releaser")
		s := w.holdfast().Semaphore("tickets")
		w.do(releaser, "semaphore.set", "tickets", 0)
		const each = 5
		for _, by := range []string{"Java", "Go"} {
			sleeps := w.asked(scripts, 2*each+2)
			var inJava []*Call
			inGo := make(chan error, each)
			for i := range each {
				inJava = append(inJava, redisson.Thread(fmt.Sprint(i)).Go("semaphore.acquire", "tickets"))
				go func() { inGo <- s.Acquire(w.ctx, 1) }()
			}
			sleeps()
			w.parked()
			released := time.Now()
			if by == "Java" {
				w.do(releaser, "semaphore.release", "tickets", 2*each)
			} else if err := s.Release(w.ctx, 2*each); err != nil {
				t.Fatal(err)
			}
			for _, call := range inJava {
				w.result(call)
			}
			for range each {
				redistest.Check(t, ended(t, "a goroutine", patience, inGo))
			}
			w.soon("released by "+by+": all were in after", time.Since(released), byMessage)
			w.expect("0", releaser, "semaphore.available", "tickets")
		}
	})
}

// Permits come free without a message, as when a message is lost. A thread of Java sleeps on for
// ever. A goroutine looks again within a second.
func TestALostMessage(t *testing.T) {
	everywhere(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		waiter := redisson.Thread("waiter")
		s := w.holdfast().Semaphore("tickets")
		w.do(waiter, "semaphore.set", "tickets", 0)
		sleeps := w.asked(scripts, 4)
		inJava := waiter.Go("semaphore.acquire", "tickets")
		inGo := make(chan error, 1)
		go func() { inGo <- s.Acquire(w.ctx, 1) }()
		sleeps()
		w.parked()
		freed := time.Now()
		redistest.Must(t, w.rdb.IncrBy(w.ctx, "tickets", 2).Err())
		redistest.Must(t, ended(t, "Go's waiter", patience, inGo))
		w.soon("Go's waiter was in after", time.Since(freed), poll+late)
		still(t, "Java's waiter, whom nobody told", inJava.Done())
		// Any release of Go wakes the thread, because Holdfast tells how many permits are free in
		// all.
		redistest.Must(t, s.Release(w.ctx, 1))
		w.result(inJava)
	})
}
