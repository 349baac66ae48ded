// Each language sees the other's counts of re-entry in Redis; a multi-lock behaves like its locks; tokens are one growing
// sequence.

package interop

import (
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// The lock has one expiry, and both languages read it.
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
			redistest.Must(t, err)
			count, err := m.HoldCount(w.ctx, owner)
			if err != nil || count != step.count {
				t.Errorf("after %s: HoldCount = %d, %v; want %d", step.command, count, err, step.count)
			}
			w.holds("counted", map[string]string{owner.String(): strconv.Itoa(step.count)})
		}
		if left, err := m.Remaining(w.ctx); err != nil || left <= 20*time.Second || left > 30*time.Second {
			t.Errorf("Go sees %v of 30 s, %v", left, err)
		}
		w.do(thread, "lock.unlock", "counted")
		w.holds("counted", nil)
		w.refused("IllegalMonitorStateException", thread, "lock.unlock", "counted")
	})
}

func TestGosCountsAreSeenInJava(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast().Mutex("counted", holdfast.Fixed(time.Minute))
		w.expect("-2", thread, "lock.remaining", "counted")
		var leases []*holdfast.Lease
		ctx := w.ctx
		for count := 1; count <= 3; count++ {
			l := w.grant(ctx, m.Lock)
			leases, ctx = append(leases, l), l.Context(w.ctx)
			w.holds("counted", map[string]string{l.Owner().String(): strconv.Itoa(count)})
			w.expect("true", thread, "lock.locked", "counted")
			w.expect("false", thread, "lock.mine", "counted")
			w.expect("0", thread, "lock.count", "counted")
			w.expect("false", thread, "lock.tryLock", "counted", 0, -1)
			w.refused("IllegalMonitorStateException", thread, "lock.unlock", "counted")
		}
		if ms, err := strconv.Atoi(w.do(thread, "lock.remaining", "counted")); err != nil || ms <= 50_000 || ms > 60_000 {
			t.Errorf("Java sees %d ms of a minute, %v", ms, err)
		}
		for i, l := range leases { // in the order of their grants, which Java could not do
			redistest.Must(t, l.Release(w.ctx))
			if left := len(leases) - 1 - i; left > 0 {
				w.holds("counted", map[string]string{l.Owner().String(): strconv.Itoa(left)})
			}
		}
		w.expect("false", thread, "lock.locked", "counted")
		w.expect("true", thread, "lock.tryLock", "counted", 0, -1)
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
		redistest.Check(t, redistest.Err(m.TryLock(w.ctx)))
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

func TestMultiLocksOfBothLanguages(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		client := w.holdfast()
		both := holdfast.NewMultiLock(client.Mutex("b"), client.Mutex("a"))

		w.do(thread, "multi.lock", "a,b")
		redistest.Is(t, "TryLock() beside Java's", redistest.Err(both.TryLock(w.ctx)), holdfast.ErrBusy)
		w.do(thread, "multi.unlock", "a,b")
		l, err := both.Lock(w.ctx)
		redistest.Must(t, err)
		// An old multi-lock of Java gives up at once if it has no time to wait.
		w.expect("false", thread, "multi.tryLock", "a,b", 50, -1)
		w.expect("false", thread, "lock.tryLock", "b", 0, -1)
		redistest.Must(t, l.Release(w.ctx))
		w.expect("true", thread, "multi.tryLock", "a,b", 1000, -1)
		w.do(thread, "multi.unlock", "a,b")
	})
}

func TestTokensGrowAcrossLanguages(t *testing.T) {
	everywhere(t, "3.19", func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast().Mutex("account", holdfast.JavaTokens())
		last := int64(0)
		for range redistest.Count(t, 1000) {
			inJava, err := strconv.ParseInt(w.do(thread, "fenced.lockToken", "account"), 10, 64)
			if err != nil || inJava <= last {
				t.Fatalf("Java's token %d after %d, %v", inJava, last, err)
			}
			w.do(thread, "fenced.unlock", "account")
			l := w.grant(w.ctx, m.Lock)
			if l.Token() <= inJava {
				t.Fatalf("Go's token %d after %d", l.Token(), inJava)
			}
			last = l.Token()
			w.expect(strconv.FormatInt(last, 10), thread, "fenced.token", "account")
			redistest.Must(t, l.Release(w.ctx))
		}
		redistest.Equal(t, w.ttl("redisson_lock_token:{account}"), -1, "the token's key has an expiry: %v")

		// Redisson counts from the token that it finds. Where the token's key is gone, Redisson begins at 1. Go goes on
		// from the time.
		before := w.grant(w.ctx, m.Lock)
		redistest.Must(t, w.rdb.Del(w.ctx, "account", "redisson_lock_token:{account}").Err())
		w.expect("1", thread, "fenced.lockToken", "account")
		w.do(thread, "fenced.unlock", "account")
		after := w.grant(w.ctx, m.Lock)
		if after.Token() <= before.Token() || after.Token() < time.Now().Add(-time.Minute).UnixMicro() {
			t.Errorf("token %d after %d", after.Token(), before.Token())
		}
	})
}

// Nesting in Java uses up a token, and then the outer section has an old token. In Go all leases of
// a hold share one token.
func TestATokenIsTheHoldsOwn(t *testing.T) {
	everywhere(t, "3.19", func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast().Mutex("account", holdfast.JavaTokens())
		outer := w.grant(w.ctx, m.Lock)
		inner := w.grant(outer.Context(w.ctx), m.Lock)
		w.expect(strconv.FormatInt(outer.Token(), 10), thread, "fenced.token", "account")
		if inner.Token() != outer.Token() {
			t.Errorf("tokens %d and %d of one hold", outer.Token(), inner.Token())
		}
		for _, l := range []*holdfast.Lease{inner, outer} {
			redistest.Must(t, l.Release(w.ctx))
		}

		first := w.do(thread, "fenced.lockToken", "account")
		w.do(thread, "fenced.lock", "account")
		if now := w.do(thread, "fenced.token", "account"); now == first {
			t.Error("Redisson does not burn tokens on re-entry any more: say so in docs/redisson-interop.md")
		}
	})
}
