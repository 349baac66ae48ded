// Each language sees the other's counts of re-entry in Redis.

package interop

import (
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

func TestJavasCountsAreSeenInGo(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast().Mutex("counted")
		for _, step := range []struct {
			command string
			count   int
		}{{"lock.lock", 1}, {"lock.lock", 2}, {"lock.lock", 3}, {"lock.unlock", 2}, {"lock.unlock", 1}} {
			w.do(thread, step.command, "counted")
			w.expect(strconv.Itoa(step.count), thread, "lock.count", "counted")
			owner, err := m.Holder(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			count, err := m.HoldCount(w.ctx, owner)
			if err != nil || count != step.count {
				t.Errorf("after %s: HoldCount = %d, %v; want %d", step.command, count, err, step.count)
			}
			w.holds("counted", map[string]string{owner.String(): strconv.Itoa(step.count)})
		}
		w.do(thread, "lock.unlock", "counted")
		w.holds("counted", nil)
		w.refused("IllegalMonitorStateException", thread, "lock.unlock", "counted")
	})
}

func TestGosCountsAreSeenInJava(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast().Mutex("counted")
		var leases []*holdfast.Lease
		ctx := w.ctx
		for count := 1; count <= 3; count++ {
			l, err := m.Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			leases, ctx = append(leases, l), l.Context(w.ctx)
			w.holds("counted", map[string]string{l.Owner().String(): strconv.Itoa(count)})
			w.expect("true", thread, "lock.locked", "counted")
			w.expect("false", thread, "lock.mine", "counted")
			w.expect("0", thread, "lock.count", "counted")
			w.expect("false", thread, "lock.tryLock", "counted", 0, -1)
			w.refused("IllegalMonitorStateException", thread, "lock.unlock", "counted")
		}
		for i, l := range leases { // in the order of their grants, which Java could not do
			if err := l.Release(w.ctx); err != nil {
				t.Fatal(err)
			}
			if left := len(leases) - 1 - i; left > 0 {
				w.holds("counted", map[string]string{l.Owner().String(): strconv.Itoa(left)})
			}
		}
		w.expect("false", thread, "lock.locked", "counted")
		w.expect("true", thread, "lock.tryLock", "counted", 0, -1)
	})
}

// The lock has one expiry, and both languages read it.
func TestRemainingTimeIsTheSame(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		client := w.holdfast()
		m := client.Mutex("timed", holdfast.Fixed(time.Minute))
		w.expect("-2", thread, "lock.remaining", "timed")
		l, err := m.Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		ms, err := strconv.Atoi(w.do(thread, "lock.remaining", "timed"))
		if err != nil || ms <= 50_000 || ms > 60_000 {
			t.Errorf("Java sees %d ms of a minute, %v", ms, err)
		}
		if err := l.Release(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.do(thread, "lock.lock", "timed", 60_000)
		left, err := m.Remaining(w.ctx)
		if err != nil || left <= 50*time.Second || left > time.Minute {
			t.Errorf("Go sees %v of a minute, %v", left, err)
		}
	})
}

// In a lock that is not reentrant, one more thread of Java is no different from one more
// acquisition of Go. The lock refuses one thread that asks twice.
func TestALockThatIsNotReentrant(t *testing.T) {
	everywhere(t, "4.4", func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast().Mutex("once")
		w.do(thread, "nonreentrant.lock", "once")
		w.refused("IllegalMonitorStateException", thread, "nonreentrant.lock", "once")
		if _, err := m.TryLock(w.ctx); err == nil {
			t.Error("Go is in beside Java")
		}
		w.do(thread, "nonreentrant.unlock", "once")
		if _, err := m.TryLock(w.ctx); err != nil {
			t.Error(err)
		}
	})
}

// holds checks what is in a lock's hash.
func (w *world) holds(key string, want map[string]string) {
	w.t.Helper()
	got := w.hash(key)
	if len(got) != len(want) {
		w.t.Errorf("%s: %v, want %v", key, got, want)
		return
	}
	for field, value := range want {
		if got[field] != value {
			w.t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
}
