// Either language can take the lock from the other by force.

package interop

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Java takes the lock from Go by force. Go's holder learns of it with its next renewal, and never
// revives the lock. A waiter is in at once.
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
		if after := waiting.At().Sub(forced); after > prompt(late) {
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

// Go takes the lock from Java by force. Java's watchdog does not revive the lock, and a waiter is
// in at once. Java's holder learns of the loss when it unlocks, not before.
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
		if after := waiting.At().Sub(forced); after > prompt(late) {
			t.Errorf("the waiter was in after %v", after)
		}
		w.refused("IllegalMonitorStateException", holder, "lock.unlock", "forced")
		w.do(waiter, "lock.unlock", "forced")

		// By the time that Java has renewed another lock once, it would also have renewed this one.
		w.do(holder, "lock.lock", "sign")
		w.renewed("sign")
		w.holds("forced", nil)
		if held, err := client.Mutex("forced").ForceRelease(w.ctx); err != nil || held {
			t.Errorf("ForceRelease() of a free lock = %v, %v", held, err)
		}
	})
}
