// The fencing tokens of both languages are one growing sequence.

package interop

import (
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

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
			l, err := m.Lock(w.ctx)
			if err != nil {
				t.Fatal(err)
			}
			if l.Token() <= inJava {
				t.Fatalf("Go's token %d after %d", l.Token(), inJava)
			}
			last = l.Token()
			w.expect(strconv.FormatInt(last, 10), thread, "fenced.token", "account")
			if err := l.Release(w.ctx); err != nil {
				t.Fatal(err)
			}
		}
		if left := w.ttl("redisson_lock_token:{account}"); left != -1 {
			t.Errorf("the token's key has an expiry: %v", left)
		}
	})
}

// Nesting in Java uses up a token, and then the outer section has an old token. In Go all leases of
// a hold share one token.
func TestATokenIsTheHoldsOwn(t *testing.T) {
	everywhere(t, "3.19", func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast().Mutex("account", holdfast.JavaTokens())
		outer, err := m.Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		inner, err := m.Lock(outer.Context(w.ctx))
		if err != nil {
			t.Fatal(err)
		}
		w.expect(strconv.FormatInt(outer.Token(), 10), thread, "fenced.token", "account")
		if inner.Token() != outer.Token() {
			t.Errorf("tokens %d and %d of one hold", outer.Token(), inner.Token())
		}
		for _, l := range []*holdfast.Lease{inner, outer} {
			if err := l.Release(w.ctx); err != nil {
				t.Fatal(err)
			}
		}

		first := w.do(thread, "fenced.lockToken", "account")
		w.do(thread, "fenced.lock", "account")
		if now := w.do(thread, "fenced.token", "account"); now == first {
			t.Error("Redisson does not burn tokens on re-entry any more: say so in docs/redisson-interop.md")
		}
	})
}

// Redisson counts from the token that it finds. Where the token's key is gone, Redisson begins at
// 1. Go goes on from the time.
func TestTokensGrowWhenJavaLosesThem(t *testing.T) {
	everywhere(t, "3.19", func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast().Mutex("account", holdfast.JavaTokens())
		before, err := m.Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.rdb.Del(w.ctx, "account", "redisson_lock_token:{account}").Err(); err != nil {
			t.Fatal(err)
		}
		w.expect("1", thread, "fenced.lockToken", "account")
		w.do(thread, "fenced.unlock", "account")
		after, err := m.Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if after.Token() <= before.Token() || after.Token() < time.Now().Add(-time.Minute).UnixMicro() {
			t.Errorf("token %d after %d", after.Token(), before.Token())
		}
	})
}
