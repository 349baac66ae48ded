// Force: either language takes the lock from the other.

package interop

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// TestJavaTakesTheLockFromGo: Go's holder is told with its next renewal, and never
// revives it; a waiter is in at once.
func TestJavaTakesTheLockFromGo(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		waiter, other := redisson.Thread("waiter"), redisson.Thread("other")
		l, err := w.holdfast(holdfast.WithDefaults(holdfast.Renewed(lease))).Mutex("forced").Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		held := l.Context(w.ctx)
		sleeps := w.asked(scripts, 2)
		waiting := waiter.Go("lock.lock", "forced")
		sleeps()
		forced := time.Now()
		w.expect("true", other, "lock.forceUnlock", "forced")
		w.result(waiting)
		if after := waiting.At().Sub(forced); after > late {
			t.Errorf("the waiter was in after %v", after)
		}
		ended(t, "the context of a lease that was taken away", lease/3+late, held.Done())
		if !errors.Is(l.Err(), holdfast.ErrLost) {
			t.Errorf("Err() = %v", l.Err())
		}
		before := w.hash("forced")
		if err := l.Release(w.ctx); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("Release() = %v", err)
		}
		w.holds("forced", before)
		w.do(waiter, "lock.unlock", "forced")
		w.expect("false", other, "lock.forceUnlock", "forced")
	})
}

// TestGoTakesTheLockFromJava: Java's watchdog does not revive it, a waiter is in at
// once, and Java's holder hears of it when it unlocks: not before.
func TestGoTakesTheLockFromJava(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		redisson := w.redisson("r", watchdog())
		holder, waiter := redisson.Thread("holder"), redisson.Thread("waiter")
		client := w.holdfast()
		w.do(holder, "lock.lock", "forced")
		sleeps := w.asked(scripts, 2)
		waiting := waiter.Go("lock.lock", "forced", 60_000)
		sleeps()
		forced := time.Now()
		if held, err := client.Mutex("forced").ForceRelease(w.ctx); err != nil || !held {
			t.Fatalf("ForceRelease() = %v, %v", held, err)
		}
		w.result(waiting)
		if after := waiting.At().Sub(forced); after > late {
			t.Errorf("the waiter was in after %v", after)
		}
		w.refused("IllegalMonitorStateException", holder, "lock.unlock", "forced")
		w.do(waiter, "lock.unlock", "forced")

		// By the time that another lock has been renewed once, so would this one.
		w.do(holder, "lock.lock", "sign")
		w.renewed("sign")
		w.holds("forced", nil)
		if held, err := client.Mutex("forced").ForceRelease(w.ctx); err != nil || held {
			t.Errorf("ForceRelease() of a free lock = %v, %v", held, err)
		}
	})
}
