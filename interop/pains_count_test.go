// These are the known pains of Redisson's semaphores and latches, beyond the pains in
// pains_test.go.

package interop

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Redisson gives back all permits that ran out at once, and from some 8 000 permits on its script
// fails. Go counts the permits all the same, and afterwards Java counts them too.
func TestManyPermitsThatRanOut(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		p := w.holdfast().PermitSemaphore("seats")
		const many = 9000
		w.do(thread, "permits.set", "seats", many)
		var taken []redis.Z
		for i := range many {
			taken = append(taken, redis.Z{Score: float64(time.Now().Add(-time.Minute).UnixMilli()), Member: fmt.Sprintf("%016d", i)})
		}
		if err := w.rdb.ZAdd(w.ctx, "{seats}:timeout", taken...).Err(); err != nil {
			t.Fatal(err)
		}
		if err := w.rdb.Set(w.ctx, "seats", 0, 0).Err(); err != nil {
			t.Fatal(err)
		}
		if value, err := thread.Do(w.ctx, "permits.available", "seats"); err == nil {
			t.Errorf("Java counts %s: say so in docs/redisson-interop.md", value)
		}
		if n, err := p.Available(w.ctx); err != nil || n != many {
			t.Errorf("Available() = %d, %v", n, err)
		}
		// Each acquisition of Go gives back some of the permits.
		for range 3 {
			l, err := p.TryAcquire(w.ctx, 1)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(w.ctx); err != nil {
				t.Fatal(err)
			}
		}
		w.expect(fmt.Sprint(many), thread, "permits.available", "seats")
	})
}

// A latch that Java set to zero stays where it is: nobody waits for it, and nobody can set it. Go
// does not set a latch to zero.
func TestALatchSetToZeroByJava(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		l := w.holdfast().Latch("ready")
		if _, err := l.TrySetCount(w.ctx, 0); !errors.Is(err, holdfast.ErrBadArgument) {
			t.Errorf("TrySetCount(0) = %v", err)
		}
		w.expect("true", thread, "latch.set", "ready", 0)
		w.expect("false", thread, "latch.set", "ready", 1)
		if err := l.Wait(w.ctx); err != nil {
			t.Errorf("Wait() for a latch at zero = %v", err)
		}
	})
}

// A latch goes without a message, as when the message is lost. A thread of Java sleeps on for ever.
// A goroutine looks again within a second.
func TestALatchThatGoesWithoutAMessage(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		counter, waiter := redisson.Thread("counter"), redisson.Thread("waiter")
		l := w.holdfast().Latch("ready")
		w.expect("true", counter, "latch.set", "ready", 1)
		sleeps := w.asked([]string{"get"}, 2)
		inJava := waiter.Go("latch.await", "ready")
		sleeps()
		w.parked()
		sleeps = w.asked(scripts, 2)
		inGo := make(chan error, 1)
		go func() { inGo <- l.Wait(w.ctx) }()
		sleeps()
		if err := w.rdb.Del(w.ctx, "ready").Err(); err != nil {
			t.Fatal(err)
		}
		ended(t, "Go's Wait", poll+late, inGo)
		still(t, "Java's await, which nobody told", inJava.Done())
		w.expect("true", counter, "latch.set", "ready", 1)
		w.do(counter, "latch.countDown", "ready")
		w.result(inJava)
	})
}

// A message of Redisson wakes the thread that came first, for which there are too few permits. The
// thread behind it sleeps on beside a free permit. In the same case Go's small request takes the
// permit.
func TestASmallRequestBehindALargeOne(t *testing.T) {
	redistest.LongRun(t)
	everywhere(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		large, small, releaser := redisson.Thread("large"), redisson.Thread("small"), redisson.Thread("releaser")
		w.do(releaser, "semaphore.set", "javas", 0)
		sleeps := w.asked(scripts, 2)
		first := large.Go("semaphore.acquire", "javas", 5)
		sleeps()
		w.parked()
		sleeps = w.asked(scripts, 2)
		second := small.Go("semaphore.acquire", "javas", 1)
		sleeps()
		w.parked()
		sleeps = w.asked(scripts, 2) // the release, and the thread that it woke
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
		if err := ended(t, "Go's small request", time.Second+poll+late, inGo); err != nil {
			t.Error(err)
		}
		w.do(releaser, "semaphore.release", "gos", 5)
		if err := ended(t, "Go's large request", time.Second+poll+late, rest); err != nil {
			t.Error(err)
		}
	})
}
