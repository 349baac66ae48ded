// These are known pains of Redisson: each test says what happens to Java, and shows that a process of Go beside it stays
// right. If a test fails because Redisson was mended, that is good news for docs/redisson-interop.md.

package interop

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// pain shows one in the long run.
func pain(t *testing.T, since string, test func(t *testing.T, w *world)) {
	t.Helper()
	redistest.LongRun(t)
	everywhere(t, since, test)
}

// A call of Java inside a hold changes how long the lock lives, and what it does to permits drops their expiry. If a
// lease is then below a third of the watchdog's time, nobody renews it in time.
func TestWhatCallsOfJavaDoToAnExpiry(t *testing.T) {
	pain(t, Last3, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		type call struct {
			command string
			args    []any
		}
		for i, tc := range []struct {
			what        string
			calls       []call
			least, most time.Duration // what is left then
		}{
			{"a nested lock shortens the lease", []call{{"lock.lock", []any{60_000}}, {"lock.lock", []any{1_000}}}, 0, time.Second},
			{"nested writers add up their leases", []call{{"write.lock", []any{60_000}}, {"write.lock", []any{60_000}}},
				100 * time.Second, 2 * time.Minute},
			{"a read unlock leaves the longest read lease", []call{{"write.lock", []any{60_000}}, {"read.lock", []any{2_000}},
				{"read.lock", []any{2_000}}, {"read.unlock", nil}}, 0, 2 * time.Second},
			{"draining drops the expiry", []call{{"semaphore.drain", nil}}, -1, -1},
			{"adding permits drops the expiry", []call{{"semaphore.add", []any{1}}}, -1, -1},
		} {
			name := fmt.Sprint("doc", i)
			if strings.HasPrefix(tc.calls[0].command, "semaphore") {
				redistest.Must(t, w.rdb.Set(w.ctx, name, 5, time.Hour).Err())
			}
			for _, c := range tc.calls {
				w.do(thread, c.command, append([]any{name}, c.args...)...)
			}
			if left := w.ttl(name); left < tc.least || left > tc.most {
				t.Errorf("%s: %v are left, want %v to %v", tc.what, left, tc.least, tc.most)
			}
		}
	})
}

// A thread of Java holds both sides, and leaves the read side first. It loses the write side one
// lease later without knowing it, and Go is in.
func TestAReadUnlockOfJavaEndsItsWriteWatchdog(t *testing.T) {
	pain(t, Last3, func(t *testing.T, w *world) {
		writer := w.redisson("r", watchdog()).Thread("writer")
		w.do(writer, "write.lock", "doc")
		w.do(writer, "read.lock", "doc")
		w.do(writer, "read.unlock", "doc")
		began := time.Now()
		l := w.grant(w.ctx, w.holdfast().RWMutex("doc").Lock)
		t.Logf("Go got the write side %v after Java's read unlock, of a lease of %v", time.Since(began), lease)
		w.refused("IllegalMonitorStateException", writer, "write.unlock", "doc")
		redistest.Check(t, l.Release(w.ctx))
	})
}

// A read unlock of Java shortens the life of the hash to the longest read lease that is left. Go's
// reader renews its lease, and does not lose it.
func TestAReadUnlockOfJavaShortensTheHash(t *testing.T) {
	pain(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		reader, writer := redisson.Thread("reader"), redisson.Thread("writer")
		m := w.holdfast(holdfast.WithDefaults(holdfast.Renewed(lease))).RWMutex("doc")
		l := w.grant(w.ctx, m.RLock)
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
		redistest.Check(t, l.Release(w.ctx))
	})
}

// A spin lock sends no messages, so a goroutine waits for it by polling. A thread that spins is in
// soon after Go has left.
func TestASpinLockTellsNobody(t *testing.T) {
	pain(t, "3.15", func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast().Mutex("spun")
		w.do(thread, "spin.lock", "spun")
		granted := w.asks(m.Lock)
		released := time.Now()
		w.do(thread, "spin.unlock", "spun")
		l := w.granted("Go's grant", granted)
		w.soon("Go was in after", time.Since(released), poll+late)
		waiting := thread.Go("spin.lock", "spun")
		sleeps := w.asked(scripts, 3)
		sleeps()
		released = time.Now()
		redistest.Must(t, l.Release(w.ctx))
		w.result(waiting)
		w.soon("Java, whose sleeps take 128 ms and some more, was in after", waiting.At().Sub(released), 300*time.Millisecond)
	})
}

// tryLockAndGetToken() waits, although its documentation says that it does not. Go's TryLock does
// not wait.
func TestATryForATokenInJavaWaits(t *testing.T) {
	pain(t, "3.19", func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast().Mutex("account", holdfast.JavaTokens())
		l := w.grant(w.ctx, m.Lock)
		w.notIn("TryLock()", w.holdfast().Mutex("account", holdfast.JavaTokens()).TryLock)
		trying := w.sleeps(thread, "fenced.tryToken", "account")
		w.parked()
		still(t, "Java's try", trying.Done())
		redistest.Must(t, l.Release(w.ctx))
		if token, err := strconv.ParseInt(w.result(trying), 10, 64); err != nil || token <= l.Token() {
			t.Errorf("token %d after %d, %v", token, l.Token(), err)
		}
	})
}

// A fair waiter of Java dies. Redisson keeps its place for five minutes. During that time Java's
// threads wait although the lock is free, and ask without a pause. Go has a queue of its own, and
// is in at once.
func TestADeadFairWaiterOfJava(t *testing.T) {
	pain(t, Last3, func(t *testing.T, w *world) {
		w.ownJava()
		m := w.holdfast().FairMutex("desk")
		l := w.grant(w.ctx, m.Lock)
		w.sleeps(w.redisson("dead").Thread("t"), "fair.lock", "desk")
		w.java.Kill()
		redistest.Must(t, l.Release(w.ctx))
		w.ownJava()
		thread := w.redisson("live").Thread("t")
		before := w.commands(scripts)
		w.expect("false", thread, "fair.tryLock", "desk", 1000, -1)
		if asked := w.commands(scripts) - before; asked < 20 { // one that waits for a message asks once or twice
			t.Errorf("Java asked %d times in a second: say so in docs/redisson-interop.md", asked)
		} else {
			t.Logf("Java asked %d times in a second", asked)
		}
		w.expect("false", thread, "fair.locked", "desk")
		began := time.Now()
		l = w.grant(w.ctx, m.Lock)
		w.soon("Go was in after", time.Since(began), late)
		redistest.Check(t, l.Release(w.ctx))
	})
}

// Overlapping readers of Java keep out the writers of both languages, for as long as a reader is
// always in. In return, nobody is in beside a writer. Go's writer is in when the readers pause. A reader that asks for the
// write side waits for itself.
func TestOverlappingReadersOfJavaKeepWritersOut(t *testing.T) {
	pain(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		m := w.holdfast().RWMutex("doc")
		a, b := redisson.Thread("a"), redisson.Thread("b")
		w.do(a, "read.lock", "doc")
		w.expect("false", a, "write.tryLock", "doc", 300, -1)
		granted := w.asks(m.Lock)
		for range redistest.Count(t, 500) {
			w.do(b, "read.lock", "doc")
			w.do(a, "read.unlock", "doc")
			a, b = b, a
		}
		still(t, "Go's writer beside a reader of Java's", granted)
		released := time.Now()
		w.do(a, "read.unlock", "doc")
		l := w.granted("Go's writer", granted)
		w.soon("Go's writer was in after", time.Since(released), byMessage)
		redistest.Check(t, l.Release(w.ctx))
	})
}

// A lock has no expiry, as after a PERSIST by hand. Redisson's fenced lock takes the answer "busy,
// no end known" for a grant with the token -1, and is in beside the holder. Go is not.
func TestALockWithoutExpiry(t *testing.T) {
	pain(t, "3.19", func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		holder, thread := redisson.Thread("holder"), redisson.Thread("t")
		m := w.holdfast().Mutex("account", holdfast.JavaTokens())
		w.do(holder, "fenced.lock", "account", 60_000)
		redistest.Must(t, w.rdb.Persist(w.ctx, "account").Err())
		before := w.hash("account")
		w.notIn("TryLock()", m.TryLock)
		w.expect("-1", thread, "fenced.lockToken", "account")
		w.refused("IllegalMonitorStateException", thread, "fenced.unlock", "account")
		w.holds("account", before)
		w.do(holder, "fenced.unlock", "account")
		redistest.Check(t, redistest.Err(m.TryLock(w.ctx)))
	})
}

// The lease of a reader of Java is over. Java tells the reader that it still holds, as long as
// others keep the hash. Go tells its reader of the loss. Neither reader keeps a writer out.
func TestAReaderOfJavaWhoseLeaseIsOver(t *testing.T) {
	pain(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		over, live, writer := redisson.Thread("over"), redisson.Thread("live"), redisson.Thread("writer")
		m := w.holdfast(holdfast.WithDefaults(holdfast.Fixed(lease / 4))).RWMutex("doc")
		w.do(live, "read.lock", "doc", 60_000)
		l := w.grant(w.ctx, m.RLock)
		held := l.Context(w.ctx)
		w.do(over, "read.lock", "doc", lease.Milliseconds()/4)
		ended(t, "the lease of Go's reader", lease/4+late, held.Done())
		redistest.Is(w.t, "Err()", l.Err(), holdfast.ErrLost)
		redistest.Eventually(t, patience, "the end of Java's read lease", func() error {
			keys, err := redistest.Keys(w.ctx, w.rdb, "{doc}:*:rwlock_timeout:*")
			if len(keys) > 1 {
				return errors.New(keys[0])
			}
			return err
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
	pain(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		thread, other := redisson.Thread("t"), redisson.Thread("other")
		client := w.holdfast()
		w.do(thread, "multi.lock", "a,b")
		w.expect("true", other, "lock.forceUnlock", "a")
		w.refused("IllegalMonitorStateException", thread, "multi.unlock", "a,b")
		w.notIn("TryLock() of what Java left", client.Mutex("b").TryLock)
		w.expect("true", other, "lock.forceUnlock", "b")

		l, err := holdfast.NewMultiLock(client.Mutex("a"), client.Mutex("b")).Lock(w.ctx)
		redistest.Must(t, err)
		w.expect("true", other, "lock.forceUnlock", "a")
		redistest.Is(w.t, "Release()", l.Release(w.ctx), holdfast.ErrLost)
		w.expect("false", other, "lock.locked", "b")
	})
}

// Redisson gives back all permits that ran out at once, and from some 8 000 permits on its script
// fails. Go counts the permits all the same, and afterwards Java counts them too.
func TestManyPermitsThatRanOut(t *testing.T) {
	pain(t, Last3, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		p := w.holdfast().PermitSemaphore("seats")
		const many = 9000
		w.do(thread, "permits.set", "seats", many)
		var taken []redis.Z
		for i := range many {
			taken = append(taken, redis.Z{Score: float64(time.Now().Add(-time.Minute).UnixMilli()), Member: fmt.Sprintf("%016d", i)})
		}
		redistest.Must(t, w.rdb.ZAdd(w.ctx, "{seats}:timeout", taken...).Err())
		redistest.Must(t, w.rdb.Set(w.ctx, "seats", 0, 0).Err())
		if value, err := thread.Do(w.ctx, "permits.available", "seats"); err == nil {
			t.Errorf("Java counts %s: say so in docs/redisson-interop.md", value)
		}
		if n, err := p.Available(w.ctx); err != nil || n != many {
			t.Errorf("Available() = %d, %v", n, err)
		}
		// Each acquisition of Go gives back some of the permits.
		for range 3 {
			l, err := p.TryAcquire(w.ctx, 1)
			redistest.Must(t, err)
			redistest.Must(t, l.Release(w.ctx))
		}
		w.expect(fmt.Sprint(many), thread, "permits.available", "seats")
	})
}

// A latch that Java set to zero stays where it is: nobody waits for it, and nobody can set it. Go
// does not set a latch to zero.
func TestALatchSetToZeroByJava(t *testing.T) {
	pain(t, Last3, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		l := w.holdfast().Latch("ready")
		redistest.Is(t, "TrySetCount(0)", redistest.Err(l.TrySetCount(w.ctx, 0)), holdfast.ErrBadArgument)
		w.expect("true", thread, "latch.set", "ready", 0)
		w.expect("false", thread, "latch.set", "ready", 1)
		if err := l.Wait(w.ctx); err != nil {
			t.Errorf("Wait() for a latch at zero = %v", err)
		}
	})
}

// A message of Redisson wakes the thread that came first, for which there are too few permits. The
// thread behind it sleeps on beside a free permit. In the same case Go's small request takes the
// permit.
func TestASmallRequestBehindALargeOne(t *testing.T) {
	pain(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		large, small, releaser := redisson.Thread("large"), redisson.Thread("small"), redisson.Thread("releaser")
		w.do(releaser, "semaphore.set", "javas", 0)
		first := w.sleeps(large, "semaphore.acquire", "javas", 5)
		w.parked()
		second := w.sleeps(small, "semaphore.acquire", "javas", 1)
		w.parked()
		sleeps := w.asked(scripts, 2) // the release, and the thread that it woke
		w.do(releaser, "semaphore.release", "javas", 1)
		sleeps()
		w.parked()
		still(t, "the small request, beside a free permit: say so in docs/redisson-interop.md", second.Done())
		w.expect("1", releaser, "semaphore.available", "javas")
		w.do(releaser, "semaphore.release", "javas", 5)
		w.result(first)
		w.result(second)

		s := w.holdfast().Semaphore("gos")
		w.do(releaser, "semaphore.set", "gos", 0)
		inGo := make(chan error, 1)
		rest := make(chan error, 1)
		sleeps = w.asked(scripts, 2)
		go func() { rest <- s.Acquire(w.ctx, 5) }()
		sleeps()
		sleeps = w.asked(scripts, 2)
		go func() { inGo <- s.Acquire(w.ctx, 1) }()
		sleeps()
		w.do(releaser, "semaphore.release", "gos", 1)
		redistest.Check(t, ended(t, "Go's small request", time.Second+poll+late, inGo))
		w.do(releaser, "semaphore.release", "gos", 5)
		redistest.Check(t, ended(t, "Go's large request", time.Second+poll+late, rest))
	})
}
