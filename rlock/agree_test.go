// Before its first lock a stripe asks Redis for the number of stripes: how that ends if Redis does not answer.

package rlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

func TestATryOfAStripeEndsThoughRedisIsOutOfReach(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		p.Unplug(true)
		ctx, cancel := context.WithCancel(context.Background())
		a := w.Try(func() (*lease.Lease, error) { return p.Striped("stock", 8).At(0).TryLock(ctx) })
		w.At(4 * time.Second)
		if a.Pending() {
			t.Error("still waits after 4 s")
		}
		cancel()
		_, err := a.Result()
		world.WantErr(t, err, holdfast.ErrUnavailable)
		p.Unplug(false)
	})
}

func TestALockOfAStripeThatWasCancelledSaysWhy(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		p.Unplug(true)
		mine := errors.New("mine")
		ctx, cancel := context.WithCancelCause(context.Background())
		a := w.GoLock(ctx, p.Striped("stock", 8).At(0))
		w.At(time.Second)
		cancel(mine)
		<-a.Done
		if !errors.Is(a.Err, mine) {
			t.Error(a.Err)
		}
		p.Unplug(false)
	})
}
