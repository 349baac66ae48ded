// These are the known pains of Redisson's locks, beyond the pains in pains_test.go: what ends, what
// does not end, and what two holders have at once.

package interop

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// A lock has no expiry, as after a PERSIST by hand. Redisson's fenced lock takes the answer "busy,
// no end known" for a grant with the token -1, and is in beside the holder. Go is not.
func TestALockWithoutExpiry(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, "3.19", func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		holder, thread := redisson.Thread("holder"), redisson.Thread("t")
		m := w.holdfast().Mutex("account", holdfast.JavaTokens())
		w.do(holder, "fenced.lock", "account", 60_000)
		if err := w.rdb.Persist(w.ctx, "account").Err(); err != nil {
			t.Fatal(err)
		}
		before := w.hash("account")
		if _, err := m.TryLock(w.ctx); !errors.Is(err, holdfast.ErrBusy) {
			t.Errorf("TryLock() = %v", err)
		}
		w.expect("-1", thread, "fenced.lockToken", "account")
		w.refused("IllegalMonitorStateException", thread, "fenced.unlock", "account")
		w.holds("account", before)
		w.do(holder, "fenced.unlock", "account")
		if _, err := m.TryLock(w.ctx); err != nil {
			t.Error(err)
		}
	})
}

// Each nested writer of Java adds one lease to the time to live. Go's nested writer leaves the
// longer of the two leases.
func TestNestedWritersOfJavaAddUpTheLease(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		w.do(thread, "write.lock", "javas", 60_000)
		w.do(thread, "write.lock", "javas", 60_000)
		if left := w.ttl("javas"); left < 100*time.Second {
			t.Errorf("Java's nested writer leaves %v", left)
		}
		m := w.holdfast(holdfast.WithDefaults(holdfast.Fixed(time.Minute))).RWMutex("gos")
		outer, err := m.Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Lock(outer.Context(w.ctx)); err != nil {
			t.Fatal(err)
		}
		if left := w.ttl("gos"); left > time.Minute {
			t.Errorf("Go's nested writer leaves %v", left)
		}
	})
}

// A read unlock of Java shortens its write lease to the longest read lease that is left. A writer
// of Go keeps its own lease.
func TestAReadUnlockOfJavaShortensItsWriteLease(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		w.do(thread, "write.lock", "javas", 60_000)
		w.do(thread, "read.lock", "javas", 2_000)
		w.do(thread, "read.lock", "javas", 2_000)
		w.do(thread, "read.unlock", "javas")
		if left := w.ttl("javas"); left > 2*time.Second {
			t.Errorf("Java's read unlock leaves its writer %v", left)
		}

		client := w.holdfast()
		write, err := client.RWMutex("gos", holdfast.Fixed(time.Minute)).Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		read := client.RWMutex("gos", holdfast.Fixed(2*time.Second))
		for range 2 {
			l, err := read.RLock(write.Context(w.ctx))
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(w.ctx); err != nil {
				t.Fatal(err)
			}
		}
		if left := w.ttl("gos"); left < 50*time.Second {
			t.Errorf("Go's read release leaves its writer %v", left)
		}
	})
}

// A reader that asks for the write side waits for itself in Redisson. Go refuses it at once.
func TestAReaderThatAsksToWrite(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast().RWMutex("doc")
		w.do(thread, "read.lock", "doc")
		w.expect("false", thread, "write.tryLock", "doc", 300, -1)
		w.do(thread, "read.unlock", "doc")
		l, err := m.RLock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Lock(l.Context(w.ctx)); !errors.Is(err, holdfast.ErrUpgrade) {
			t.Errorf("Lock() of a reader = %v", err)
		}
	})
}

// The lease of a reader of Java is over. Java tells the reader that it still holds, as long as
// others keep the hash. Go tells its reader of the loss. Neither reader keeps a writer out.
func TestAReaderOfJavaWhoseLeaseIsOver(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		over, live, writer := redisson.Thread("over"), redisson.Thread("live"), redisson.Thread("writer")
		m := w.holdfast(holdfast.WithDefaults(holdfast.Fixed(lease / 4))).RWMutex("doc")
		w.do(live, "read.lock", "doc", 60_000)
		l, err := m.RLock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		held := l.Context(w.ctx)
		w.do(over, "read.lock", "doc", lease.Milliseconds()/4)
		ended(t, "the lease of Go's reader", lease/4+late, held.Done())
		if !errors.Is(l.Err(), holdfast.ErrLost) {
			t.Errorf("Err() = %v", l.Err())
		}
		redistest.Eventually(t, patience, "the end of Java's read lease", func() error {
			for _, node := range w.nodes() {
				if keys := node.Keys(w.ctx, "{doc}:*:rwlock_timeout:*").Val(); len(keys) > 1 {
					return errors.New(keys[0])
				}
			}
			return nil
		})
		w.expect("true", over, "read.mine", "doc")
		w.do(live, "read.unlock", "doc")
		if w.expect("true", writer, "write.tryLock", "doc", 1000, -1); t.Failed() {
			t.Logf("left: %v", w.hash("doc"))
		}
	})
}

// A multi-lock of Java has lost one lock. Its unlock stops at the lost lock, and the other locks
// stay locked and renewed (3.14.1 went on). Go's release frees all that Go still has.
func TestAMultiLockOfJavaThatHasLostOne(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		thread, other := redisson.Thread("t"), redisson.Thread("other")
		client := w.holdfast()
		w.do(thread, "multi.lock", "a,b")
		w.expect("true", other, "lock.forceUnlock", "a")
		w.refused("IllegalMonitorStateException", thread, "multi.unlock", "a,b")
		if _, err := client.Mutex("b").TryLock(w.ctx); !errors.Is(err, holdfast.ErrBusy) {
			t.Errorf("TryLock() of what Java left = %v: say so in docs/redisson-interop.md", err)
		}
		w.expect("true", other, "lock.forceUnlock", "b")

		l, err := holdfast.NewMultiLock(client.Mutex("a"), client.Mutex("b")).Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		w.expect("true", other, "lock.forceUnlock", "a")
		if err := l.Release(w.ctx); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("Release() = %v", err)
		}
		w.expect("false", other, "lock.locked", "b")
	})
}

// A thread of Java that never locked unlocks a free fair lock, and the unlock succeeds. Go's second
// release gives an error that says what it is.
func TestAStrangersFairUnlockOfJava(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		w.do(w.redisson("r").Thread("t"), "fair.unlock", "desk")
		l, err := w.holdfast().FairMutex("desk").Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(w.ctx); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(w.ctx); !errors.Is(err, holdfast.ErrReleased) {
			t.Errorf("the second Release() = %v", err)
		}
	})
}
