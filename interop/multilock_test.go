// A multi-lock takes several locks at once, and each language's multi-lock behaves like its locks.

package interop

import (
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast"
)

func TestMultiLocksOfBothLanguages(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		client := w.holdfast()
		both := holdfast.NewMultiLock(client.Mutex("b"), client.Mutex("a"))

		w.do(thread, "multi.lock", "a,b")
		if _, err := both.TryLock(w.ctx); !errors.Is(err, holdfast.ErrBusy) {
			t.Errorf("TryLock() beside Java's = %v", err)
		}
		w.do(thread, "multi.unlock", "a,b")
		l, err := both.Lock(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		// An old multi-lock of Java gives up at once if it has no time to wait.
		w.expect("false", thread, "multi.tryLock", "a,b", 50, -1)
		w.expect("false", thread, "lock.tryLock", "b", 0, -1)
		if err := l.Release(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.expect("true", thread, "multi.tryLock", "a,b", 1000, -1)
		w.do(thread, "multi.unlock", "a,b")
	})
}
