// Lockers for tests of code that takes a Locker and does not care where it comes from.

package holdfasttest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Granting returns a Locker that grants every Lock and TryLock at once, even to several holders at the
// same time.
func Granting(t testing.TB) holdfast.Locker {
	t.Helper()
	return newGranting(t)
}

// granting gives each caller a lock of its own.
type granting struct {
	server *Server
	client *holdfast.Client
	count  *atomic.Int64
}

func newGranting(t testing.TB) granting {
	t.Helper()
	s := New(t)
	return granting{s, s.Client(), new(atomic.Int64)}
}

func (g granting) Lock(ctx context.Context) (*holdfast.Lease, error) {
	return g.client.Mutex(lockOf(g.count.Add(1))).Lock(ctx)
}

func (g granting) TryLock(ctx context.Context) (*holdfast.Lease, error) { return g.Lock(ctx) }

// LeaseFrom lets work under Do find its lease by holdfast.LeaseFrom: the one in ctx that was granted last.
func (g granting) LeaseFrom(ctx context.Context) (*holdfast.Lease, bool) {
	for n := g.count.Load(); n > 0; n-- {
		if l, ok := g.client.Mutex(lockOf(n)).LeaseFrom(ctx); ok {
			return l, true
		}
	}
	return nil, false
}

func lockOf(n int64) string { return fmt.Sprintf("granted:%d", n) }

// Busy returns a Locker whose lock another process holds until the test ends. TryLock fails at once, and
// Lock fails when its context ends. Both errors match ErrBusy.
func Busy(t testing.TB) holdfast.Locker {
	t.Helper()
	s := New(t)
	s.HoldElsewhere("busy")
	return s.Client().Mutex("busy")
}

// LosesAfter returns a Locker that grants every Lock and TryLock at once, even to several holders at the
// same time. Each lease is lost when the time d has passed since its grant: the contexts of the lease
// are cancelled, and its Err matches ErrLost.
func LosesAfter(t testing.TB, d time.Duration) holdfast.Locker {
	t.Helper()
	losses := new(sync.WaitGroup)
	t.Cleanup(losses.Wait) // after the Client is closed, which ends its leases
	return losing{newGranting(t), d, losses}
}

// losing is granting with a loss.
type losing struct {
	granting
	after  time.Duration
	losses *sync.WaitGroup // those to come
}

func (g losing) Lock(ctx context.Context) (*holdfast.Lease, error) {
	l, err := g.granting.Lock(ctx)
	if err != nil {
		return nil, err
	}
	g.losses.Go(func() {
		timer := time.NewTimer(g.after)
		defer timer.Stop()
		select {
		case <-timer.C:
			_ = g.server.lose(l) // it may have been released meanwhile
		case <-l.Done():
		}
	})
	return l, nil
}

func (g losing) TryLock(ctx context.Context) (*holdfast.Lease, error) { return g.Lock(ctx) }
