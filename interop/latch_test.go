// Both languages count down one latch, and both wait for it.

package interop

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/latch"
)

// Both languages count. Both wake, whichever language counts last.
func TestALatchOfBothLanguages(t *testing.T) {
	onServers(t, Last3, true, func(t *testing.T, w *world) { w.latchRounds(redistest.Count(t, 1000)) })
}

// latchRounds makes both languages count and both languages wait.
func (w *world) latchRounds(rounds int) {
	w.t.Helper()
	redisson := w.redisson("r")
	counter, waiter := redisson.Thread("counter"), redisson.Thread("waiter")
	l := w.holdfast().Latch("ready")
	for round := range rounds + warmUps {
		byJava := round%2 == 0
		w.set(byJava, counter, l)
		sleepsInJava, sleepsInGo := w.asked([]string{"get"}, 2), w.asked(scripts, 2)
		inJava := waiter.Go("latch.await", "ready")
		inGo := make(chan error, 1)
		at := make(chan time.Time, 1)
		go func() {
			err := l.Wait(w.ctx)
			at <- time.Now()
			inGo <- err
		}()
		sleepsInJava()
		sleepsInGo()

		counted, err := l.CountDown(w.ctx)
		if err != nil || counted != 1 {
			w.t.Fatalf("CountDown() = %d, %v", counted, err)
		}
		w.expect("1", counter, "latch.count", "ready")
		still(w.t, "Java's await", inJava.Done())
		still(w.t, "Go's Wait", inGo)
		zero := time.Now()
		if byJava {
			w.do(counter, "latch.countDown", "ready")
		} else if _, err := l.CountDown(w.ctx); err != nil {
			w.t.Fatal(err)
		}
		redistest.Must(w.t, ended(w.t, "Go's Wait", patience, inGo))
		w.result(inJava)
		if byJava {
			w.woken(latchPair, javaToGo, round, (<-at).Sub(zero))
		} else {
			w.woken(latchPair, goToJava, round, inJava.At().Sub(zero))
		}
	}
	w.promptly(latchPair, javaToGo)
	w.promptly(latchPair, goToJava)
	w.expect("0", counter, "latch.count", "ready")
	if n := w.rdb.Exists(w.ctx, "ready").Val(); n != 0 {
		w.t.Error("the count is still there")
	}
}

const latchPair = "Latch / RCountDownLatch"

// set sets a latch to two, by Java or by Go, and checks that the other language sees that it is
// set.
func (w *world) set(byJava bool, thread Thread, l *latch.Latch) {
	w.t.Helper()
	if byJava {
		w.expect("true", thread, "latch.set", l.Name(), 2)
	}
	set, err := l.TrySetCount(w.ctx, 2)
	if err != nil || set == byJava {
		w.t.Fatalf("TrySetCount() = %v, %v; set by Java: %v", set, err, byJava)
	}
	if !byJava {
		w.expect("false", thread, "latch.set", l.Name(), 2)
	}
}

// A latch is deleted. Go's waiters get an error. Redisson tells its waiters too, but they take the
// message for that of a latch that was set, and wait on for a latch that does not exist. If the latch
// goes without a message, as when the message is lost, Go's waiters look again within a second.
func TestALatchThatIsGone(t *testing.T) {
	everywhere(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		counter, waiter := redisson.Thread("counter"), redisson.Thread("waiter")
		l := w.holdfast().Latch("ready")
		for _, withMessage := range []bool{true, false} {
			w.expect("true", counter, "latch.set", "ready", 1)
			sleeps := w.asked([]string{"get"}, 2) // a GET inside a script of Go counts too
			inJava := waiter.Go("latch.await", "ready")
			sleeps()
			w.parked()
			sleeps = w.asked(scripts, 2)
			inGo := make(chan error, 1)
			go func() { inGo <- l.Wait(w.ctx) }()
			sleeps()
			if withMessage {
				if deleted, err := l.Delete(w.ctx); err != nil || !deleted {
					t.Fatalf("Delete() = %v, %v", deleted, err)
				}
				redistest.Is(w.t, "Wait()", ended(t, "Go's Wait", late, inGo), holdfast.ErrDeleted)
			} else {
				redistest.Must(t, w.rdb.Del(w.ctx, "ready").Err())
				ended(t, "Go's Wait", prompt(poll+late), inGo)
			}
			// Java's waiter wakes only when the latch is set again and comes to zero.
			still(t, "Java's await for a latch that is gone", inJava.Done())
			w.expect("true", counter, "latch.set", "ready", 1)
			w.do(counter, "latch.countDown", "ready")
			w.result(inJava)
		}
	})
}
