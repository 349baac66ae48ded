// Each language keeps the leases that it renews, and loses the leases that it does not renew.

package interop

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// lease is the time for which a watchdog renews. poll is the longest time that a goroutine goes
// without asking. late is how much later than the end of a lease or of a poll a waiter may be in.
const (
	lease = 1200 * time.Millisecond
	poll  = 1250 * time.Millisecond
	late  = 100 * time.Millisecond
)

func watchdog() string { return fmt.Sprintf("watchdog=%d", lease.Milliseconds()) }

// A watchdog keeps the other language out for three leases, on two locks at once.
func TestAWatchdogKeepsTheOtherLanguageOut(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		redisson := w.redisson("r", watchdog())
		holder, waiter := redisson.Thread("holder"), redisson.Thread("waiter")
		client := w.holdfast(holdfast.WithDefaults(holdfast.Renewed(lease)))
		w.do(holder, "lock.lock", "javas")
		l := w.grant(w.ctx, client.Mutex("gos").Lock)

		inJava := waiter.Go("lock.tryLock", "gos", (3 * lease).Milliseconds(), -1)
		ctx, cancel := context.WithTimeout(w.ctx, 3*lease)
		defer cancel()
		redistest.Is(t, "Go, beside Java's watchdog", redistest.Err(client.Mutex("javas").Lock(ctx)), holdfast.ErrBusy)
		redistest.Equal(t, w.result(inJava), "false", "Java got in beside Go's watchdog: %q")

		if err := l.Release(w.ctx); err != nil {
			t.Errorf("Go: %v", err)
		}
		w.do(holder, "lock.unlock", "javas")
	})
}

// When a fixed lease of one language is over, the other is in, and what the first gives back touches nothing: Go's
// release is refused, and Java's unlock throws.
func TestAFixedLeaseEnds(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		thread, client := w.redisson("r").Thread("t"), w.holdfast()
		w.do(thread, "lock.lock", "javas", lease.Milliseconds())
		over := time.Now().Add(w.ttl("javas"))
		l := w.grant(w.ctx, client.Mutex("javas").Lock)
		w.inWhenOver(time.Now(), over)
		w.refused("IllegalMonitorStateException", thread, "lock.unlock", "javas")
		w.holds("javas", map[string]string{l.Owner().String(): "1"})
		redistest.Check(t, l.Release(w.ctx))

		l = w.grant(w.ctx, client.Mutex("gos", holdfast.Fixed(lease)).Lock)
		over = time.Now().Add(w.ttl("gos"))
		waiting := thread.Go("lock.lock", "gos", 60_000)
		w.result(waiting)
		w.inWhenOver(waiting.At(), over)
		before := w.hash("gos")
		redistest.Is(w.t, "Release()", l.Release(w.ctx), holdfast.ErrLost)
		w.holds("gos", before)
		w.do(thread, "lock.unlock", "gos")
	})
}

// inWhenOver checks that a waiter was in when the lease was over.
func (w *world) inWhenOver(in, over time.Time) {
	w.t.Helper()
	// The test read the expiry a moment before or after it noted the time.
	if after := in.Sub(over); after < -20*time.Millisecond || after > prompt(late) {
		w.t.Errorf("in %v after the end of the lease, want at most %v", after, late)
	}
}

// renewed waits until a renewal has extended a key's expiry.
func (w *world) renewed(key string) {
	w.t.Helper()
	last := w.ttl(key)
	redistest.Eventually(w.t, patience, key+" is renewed", func() error {
		now := w.ttl(key)
		if now <= last {
			last = now
			return fmt.Errorf("%v left", now)
		}
		return nil
	})
}
