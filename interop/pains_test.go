// These are known pains of Redisson: each test says what happens to Java, and shows that a process
// of Go beside it stays right. If a test fails because Redisson was mended, that is good news for
// docs/redisson-interop.md.

package interop

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// A nested lock of Java shortens the lease. If the lease is then below a third of the watchdog's
// time, nobody renews it in time. Go's nested lock never shortens the lease.
func TestANestedLockOfJavaShortensTheLease(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		w.do(thread, "lock.lock", "javas", 60_000)
		w.do(thread, "lock.lock", "javas", 1_000)
		if left := w.ttl("javas"); left > time.Second {
			t.Errorf("Java's nested lock leaves %v", left)
		}

		client := w.holdfast()
		outer, err := client.Mutex("gos", holdfast.Fixed(time.Minute)).Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Mutex("gos", holdfast.Fixed(time.Second)).Lock(outer.Context(w.ctx)); err != nil {
			t.Fatal(err)
		}
		if left := w.ttl("gos"); left < 50*time.Second {
			t.Errorf("Go's nested lock leaves %v", left)
		}
	})
}

// A thread of Java holds both sides, and leaves the read side first. It loses the write side one
// lease later without knowing it. In Go the writer is renewed as long as it holds.
func TestAReadUnlockOfJavaEndsItsWriteWatchdog(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		writer := w.redisson("r", watchdog()).Thread("writer")
		client := w.holdfast(holdfast.WithDefaults(holdfast.Renewed(lease)))

		w.do(writer, "write.lock", "javas")
		w.do(writer, "read.lock", "javas")
		w.do(writer, "read.unlock", "javas")
		write, err := client.RWMutex("gos").Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		read, err := client.RWMutex("gos").RLock(write.Context(w.ctx))
		if err != nil {
			t.Fatal(err)
		}
		if err := read.Release(w.ctx); err != nil {
			t.Fatal(err)
		}

		// Java's writer is not renewed, and Go gets in when the writer's lease is over.
		began := time.Now()
		l, err := client.RWMutex("javas").Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("Go got the write side %v after Java's read unlock, of a lease of %v", time.Since(began), lease)
		w.refused("IllegalMonitorStateException", writer, "write.unlock", "javas")
		if err := l.Release(w.ctx); err != nil {
			t.Error(err)
		}

		// By now the lease of Go's own writer would be over too, if it had not been renewed.
		w.expect("false", writer, "write.tryLock", "gos", lease.Milliseconds(), -1)
		if write.Err() != nil {
			t.Errorf("Go's writer: %v", write.Err())
		}
		if err := write.Release(w.ctx); err != nil {
			t.Error(err)
		}
	})
}

// A read unlock of Java shortens the life of the hash to the longest read lease that is left. Go's
// reader renews its lease, and does not lose it.
func TestAReadUnlockOfJavaShortensTheHash(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		reader, writer := redisson.Thread("reader"), redisson.Thread("writer")
		m := w.holdfast(holdfast.WithDefaults(holdfast.Renewed(lease))).RWMutex("doc")
		l, err := m.RLock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		w.do(reader, "read.lock", "doc")
		if left := w.ttl("doc"); left < 20*time.Second {
			t.Errorf("with a reader of Java's %v are left", left)
		}
		w.do(reader, "read.unlock", "doc")
		if left := w.ttl("doc"); left > lease {
			t.Errorf("Java's read unlock leaves %v, more than Go's read lease", left)
		}
		w.expect("false", writer, "write.tryLock", "doc", (2 * lease).Milliseconds(), -1)
		if l.Err() != nil {
			t.Errorf("Go's reader: %v", l.Err())
		}
		if err := l.Release(w.ctx); err != nil {
			t.Error(err)
		}
	})
}

// A spin lock sends no messages, so a goroutine waits for it by polling. A thread that spins is in
// soon after Go has left.
func TestASpinLockTellsNobody(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, "3.15", func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast().Mutex("spun")
		w.do(thread, "spin.lock", "spun")
		sleeps := w.asked(scripts, 2)
		granted := make(chan error, 1)
		var l *holdfast.Lease
		go func() {
			var err error
			l, err = m.Lock(w.ctx)
			granted <- err
		}()
		sleeps()
		released := time.Now()
		w.do(thread, "spin.unlock", "spun")
		if err := ended(t, "Go's grant", patience, granted); err != nil {
			t.Fatal(err)
		}
		if after := time.Since(released); after > prompt(poll+late) {
			t.Errorf("Go was in after %v", after)
		}
		waiting := thread.Go("spin.lock", "spun")
		sleeps = w.asked(scripts, 3)
		sleeps()
		released = time.Now()
		if err := l.Release(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.result(waiting)
		if after := waiting.At().Sub(released); after > prompt(300*time.Millisecond) {
			t.Errorf("Java was in after %v, of sleeps of 128 ms and some more", after)
		}
	})
}

// Draining in Java drops the expiry, and so does adding permits. Go keeps the expiry.
func TestDrainingInJavaDropsAnExpiry(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		s := w.holdfast().Semaphore("tickets")
		expiring := func() {
			t.Helper()
			if err := w.rdb.Set(w.ctx, "tickets", 5, time.Hour).Err(); err != nil {
				t.Fatal(err)
			}
		}
		expiring()
		if _, err := s.Drain(w.ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.AddPermits(w.ctx, 1); err != nil {
			t.Fatal(err)
		}
		if left := w.ttl("tickets"); left <= 0 {
			t.Errorf("after Go's drain and add %v are left", left)
		}
		for _, command := range [][]any{{"semaphore.drain", "tickets"}, {"semaphore.add", "tickets", 1}} {
			expiring()
			w.do(thread, command[0].(string), command[1:]...)
			if left := w.ttl("tickets"); left != -1 {
				t.Errorf("after Java's %v: %v", command, left)
			}
		}
	})
}

// tryLockAndGetToken() waits, although its documentation says that it does not. Go's TryLock does
// not wait.
func TestATryForATokenInJavaWaits(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, "3.19", func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast().Mutex("account", holdfast.JavaTokens())
		l, err := m.Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.holdfast().Mutex("account", holdfast.JavaTokens()).TryLock(w.ctx); !errors.Is(err, holdfast.ErrBusy) {
			t.Errorf("TryLock() = %v", err)
		}
		sleeps := w.asked(scripts, 2)
		trying := thread.Go("fenced.tryToken", "account")
		sleeps()
		w.parked()
		still(t, "Java's try", trying.Done())
		if err := l.Release(w.ctx); err != nil {
			t.Fatal(err)
		}
		if token, err := strconv.ParseInt(w.result(trying), 10, 64); err != nil || token <= l.Token() {
			t.Errorf("token %d after %d, %v", token, l.Token(), err)
		}
	})
}

// A fair waiter of Java dies. Redisson keeps its place for five minutes. During that time Java's
// threads wait although the lock is free, and ask without a pause. Go has a queue of its own, and
// is in at once.
func TestADeadFairWaiterOfJava(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		w.ownJava()
		m := w.holdfast().FairMutex("desk")
		l, err := m.Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		sleeps := w.asked(scripts, 2)
		w.redisson("dead").Thread("t").Go("fair.lock", "desk")
		sleeps()
		w.java.Kill()
		if err := l.Release(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.ownJava()
		thread := w.redisson("live").Thread("t")
		before := w.commands(scripts)
		w.expect("false", thread, "fair.tryLock", "desk", 1000, -1)
		if asked := w.commands(scripts) - before; asked < 100 {
			t.Errorf("Java asked %d times in a second: say so in docs/redisson-interop.md", asked)
		} else {
			t.Logf("Java asked %d times in a second", asked)
		}
		w.expect("false", thread, "fair.locked", "desk")
		began := time.Now()
		l, err = m.Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if after := time.Since(began); after > prompt(late) {
			t.Errorf("Go was in after %v", after)
		}
		if err := l.Release(w.ctx); err != nil {
			t.Error(err)
		}
	})
}

// Overlapping readers of Java keep out the writers of both languages, for as long as a reader is
// always in. In return, nobody is in beside a writer. Go's writer is in when the readers pause.
func TestOverlappingReadersOfJavaKeepWritersOut(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		m := w.holdfast().RWMutex("doc")
		a, b := redisson.Thread("a"), redisson.Thread("b")
		w.do(a, "read.lock", "doc")
		granted := make(chan error, 1)
		var l *holdfast.Lease
		sleeps := w.asked(scripts, 2)
		go func() {
			var err error
			l, err = m.Lock(w.ctx)
			granted <- err
		}()
		sleeps()
		for range redistest.Count(t, 500) {
			w.do(b, "read.lock", "doc")
			w.do(a, "read.unlock", "doc")
			a, b = b, a
		}
		still(t, "Go's writer beside a reader of Java's", granted)
		released := time.Now()
		w.do(a, "read.unlock", "doc")
		if err := ended(t, "Go's writer", patience, granted); err != nil {
			t.Fatal(err)
		}
		if after := time.Since(released); after > prompt(byMessage) {
			t.Errorf("Go's writer was in after %v", after)
		}
		if err := l.Release(w.ctx); err != nil {
			t.Error(err)
		}
	})
}
