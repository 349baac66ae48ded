// Both languages find the same things under one name, whatever the name looks like.

package interop

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// For a name with braces, Holdfast keeps the neighbours of the name where Redisson keeps them.
func TestNamesWithBraces(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		client := w.holdfast()
		for _, name := range []string{"orders", "{user7}:cart", "a:b:c", "{t}{s}", "naïve-名前"} {
			l := w.grant(w.ctx, client.Mutex(name).Lock)
			waiting := w.sleeps(thread, "lock.lock", name)
			redistest.Must(t, l.Release(w.ctx))
			w.result(waiting)
			w.notIn(name+": TryLock() beside Java", client.Mutex(name).TryLock)
			w.do(thread, "lock.unlock", name)
		}
	})
}

// For a name with odd braces, Redisson's rule puts the neighbours into another slot. The lock still
// excludes; only messages do not cross, so a waiter of Java is in when the lease that it saw is over.
func TestNamesWithOddBraces(t *testing.T) {
	eachVersion(t, Oldest, func(t *testing.T, version string) { // a cluster refuses them to Java
		w := newWorld(t, version, "single")
		thread := w.redisson("r").Thread("t")
		client := w.holdfast()
		for _, name := range []string{"a}b", "a{", "{}x"} {
			w.do(thread, "lock.lock", name)
			w.notIn(name+": TryLock() beside Java", client.Mutex(name).TryLock)
			w.do(thread, "lock.unlock", name)
			l := w.grant(w.ctx, client.Mutex(name).Lock)
			w.expect("false", thread, "lock.tryLock", name, 0, -1)
			redistest.Must(t, l.Release(w.ctx))
		}
		l := w.grant(w.ctx, client.Mutex("a}b", holdfast.Fixed(3*time.Second)).Lock)
		w.sleepsThroughTheRelease(thread, "a}b", l)
	})
}

// sleepsThroughTheRelease checks that a thread of Java that waits for a Mutex hears nothing of its release: Java does not
// poll, so it is in when the lease that it saw is over.
func (w *world) sleepsThroughTheRelease(th Thread, name string, l *holdfast.Lease) {
	w.t.Helper()
	waiting := w.sleeps(th, "lock.lock", name)
	w.parked()
	over := time.Now().Add(w.ttl(name))
	redistest.Must(w.t, l.Release(w.ctx))
	w.result(waiting)
	w.inWhenOver(waiting.At(), over)
	w.do(th, "lock.unlock", name)
}

// With the same name mapper on both sides, both languages use the same lock.
func TestNameMappers(t *testing.T) {
	everywhere(t, "3.16", func(t *testing.T, w *world) {
		thread := w.redisson("r", "prefix=shop:").Thread("t")
		mapped := w.holdfast(holdfast.WithNameMapper(func(name string) string { return "shop:" + name }))
		w.do(thread, "lock.lock", "orders")
		w.notIn("TryLock() with the same mapper", mapped.Mutex("orders").TryLock)
		w.notIn("TryLock() of the mapped name", w.holdfast().Mutex("shop:orders").TryLock)
		if _, err := w.holdfast().Mutex("orders").TryLock(w.ctx); err != nil {
			t.Errorf("TryLock() without the mapper = %v", err)
		}
	})
}

// The codec does not matter: locks, semaphores and latches do not use it.
func TestTheCodecDoesNotMatter(t *testing.T) {
	everywhere(t, Last3, func(t *testing.T, w *world) {
		client := w.holdfast()
		for _, codec := range []string{"StringCodec", "LongCodec", "ByteArrayCodec"} {
			thread := w.redisson("r", "codec=org.redisson.client.codec."+codec).Thread("t")
			w.do(thread, "lock.lock", "orders")
			if count, err := client.Mutex("orders").Holder(w.ctx); err != nil || count.IsZero() {
				t.Errorf("%s: Holder() = %v, %v", codec, count, err)
			}
			w.do(thread, "lock.unlock", "orders")
			w.do(thread, "semaphore.set", codec, 3)
			if n, err := client.Semaphore(codec).Available(w.ctx); err != nil || n != 3 {
				t.Errorf("%s: Available() = %d, %v", codec, n, err)
			}
			w.do(thread, "permits.set", "seats"+codec, 1)
			id := w.do(thread, "permits.acquire", "seats"+codec, 60_000)
			if err := client.PermitSemaphore("seats"+codec).ReleaseID(w.ctx, id); err != nil {
				t.Errorf("%s: ReleaseID() = %v", codec, err)
			}
		}
	})
}
