// The read side under the write side of the same holder.

package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

func TestAReadLockUnderAWriteLockWaitsForRedis(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		rw := p.RWMutex("rw")
		l := w.Lock(t.Context(), rw)
		p.Unplug(true)
		ctx, cancel := context.WithTimeout(l.Context(t.Context()), 8*time.Second)
		defer cancel()
		a := w.Try(func() (*lease.Lease, error) { return rw.RLock(ctx) })
		w.At(5 * time.Second)
		p.Unplug(false)
		r, err := a.Result()
		if err != nil {
			t.Errorf("at %v: %v", a.At, err)
		} else {
			w.Release(r)
		}
		w.Release(l)
	})
}
