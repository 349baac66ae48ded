// Permits with a lease have ids, expiries and counts of both languages in one set.

package interop

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func TestOneSetOfPermits(t *testing.T) {
	everywhere(t, Last3, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		p := w.holdfast().PermitSemaphore("seats")
		counts := func(free, taken int) {
			t.Helper()
			if n, err := p.Available(w.ctx); err != nil || n != free {
				t.Errorf("Available() = %d, %v; want %d", n, err, free)
			}
			if n, err := p.Acquired(w.ctx); err != nil || n != taken {
				t.Errorf("Acquired() = %d, %v; want %d", n, err, taken)
			}
			w.expect(fmt.Sprint(free), thread, "permits.available", "seats")
			w.expect(fmt.Sprint(taken), thread, "permits.acquired", "seats")
			w.expect(fmt.Sprint(free+taken), thread, "permits.all", "seats")
		}

		w.expect("true", thread, "permits.set", "seats", 3)
		java := w.do(thread, "permits.acquire", "seats", 60_000)
		l, err := p.Acquire(w.ctx, 1)
		redistest.Must(t, err)
		inGo := p.IDs(l)[0]
		counts(1, 2)

		// Each language reads and sets the lease of the other's permit.
		if left, err := p.Remaining(w.ctx, java); err != nil || left <= 50*time.Second || left > time.Minute {
			t.Errorf("Remaining(Java's) = %v, %v", left, err)
		}
		if ms, err := strconv.Atoi(w.do(thread, "permits.leaseOf", "seats", inGo)); err != nil || ms <= 20_000 || ms > 30_000 {
			t.Errorf("getLeaseTime(Go's) = %d, %v", ms, err)
		}
		redistest.Check(t, p.UpdateLease(w.ctx, java, 2*time.Minute))
		w.expect("true", thread, "permits.update", "seats", inGo, 90_000)
		if left, err := p.Remaining(w.ctx, inGo); err != nil || left <= 80*time.Second {
			t.Errorf("Remaining(Go's), as Java set it = %v, %v", left, err)
		}

		// Each language gives back the other's permit.
		redistest.Check(t, p.ReleaseID(w.ctx, java))
		w.refused("IllegalArgumentException", thread, "permits.release", "seats", java)
		w.do(thread, "permits.release", "seats", inGo)
		redistest.Is(w.t, "Release() of a permit that Java gave back", l.Release(w.ctx), holdfast.ErrLost)
		counts(3, 0)

		w.do(thread, "permits.setAll", "seats", 5)
		counts(5, 0)
		redistest.Must(t, p.AddPermits(w.ctx, -1))
		counts(4, 0)

		// Java may have permits that never end. Go reads them as such, and leaves them alone.
		id := w.do(thread, "permits.acquire", "seats", -1)
		if left, err := p.Remaining(w.ctx, id); err != nil || left != -1 {
			t.Errorf("Remaining() of one that never ends = %v, %v", left, err)
		}
		redistest.Is(t, "TryAcquire(4) beside one that never ends", redistest.Err(p.TryAcquire(w.ctx, 4)), holdfast.ErrBusy)
		redistest.Check(t, p.ReleaseID(w.ctx, id))
	})
}

// One language takes a permit. At the end of its lease the permit is free for the other language. Java has no watchdog
// for permits; that of Go keeps Java out.
func TestAPermitRunsOutForTheOther(t *testing.T) {
	everywhere(t, Last3, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		p := w.holdfast(holdfast.WithDefaults(holdfast.Fixed(lease))).PermitSemaphore("seats")
		w.do(thread, "permits.set", "seats", 1)
		end := func() time.Time {
			taken, err := w.rdb.ZRangeWithScores(w.ctx, "{seats}:timeout", 0, -1).Result()
			if err != nil || len(taken) != 1 {
				t.Fatalf("permits taken: %v, %v", taken, err)
			}
			return time.UnixMilli(int64(taken[0].Score))
		}

		java := w.do(thread, "permits.acquire", "seats", lease.Milliseconds())
		over := end()
		l, err := p.Acquire(w.ctx, 1)
		redistest.Must(t, err)
		w.inWhenOver(time.Now(), over)
		w.expect("false", thread, "permits.tryRelease", "seats", java)

		over = end()
		waiting := thread.Go("permits.acquire", "seats", 60_000)
		w.result(waiting)
		w.inWhenOver(waiting.At(), over)
		redistest.Is(w.t, "Release()", l.Release(w.ctx), holdfast.ErrLost)
		w.expect("0", thread, "permits.available", "seats")

		renewed := w.holdfast(holdfast.WithDefaults(holdfast.Renewed(lease))).PermitSemaphore("kept")
		w.do(thread, "permits.set", "kept", 1)
		l, err = renewed.Acquire(w.ctx, 1)
		redistest.Must(t, err)
		w.expect("", thread, "permits.tryAcquire", "kept", (2 * lease).Milliseconds(), 60_000)
		redistest.Check(t, l.Release(w.ctx))
	})
}
