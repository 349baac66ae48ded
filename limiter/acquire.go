// Concurrent: how many at the same time, beside how many in a time.

package limiter

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/holdfast-go/holdfast/internal/errs"
	"github.com/holdfast-go/holdfast/lease"
)

// concurrency is whether this process has made sure how many leases there may be.
type concurrency struct {
	mu  sync.Mutex
	set bool
}

// Acquire takes one lease of Concurrent(n) and one unit of the rate. First Acquire waits until fewer
// than n leases are taken, and takes a lease. After that it takes one unit, and waits until the unit may
// be used, as Wait does. Acquire returns the lease. The caller must release the lease when its work is
// done. The lease is a permit of a PermitSemaphore, and is renewed or fixed as the Client's defaults
// say. If the process dies, the permit is free when the lease is over.
//
// If ctx ends, or if ctx's deadline is before the unit may be used, Acquire returns the error that
// PermitSemaphore.Acquire or Wait has returned. Acquire then keeps no lease, and gives the unit back as
// Wait does. If the Limiter was made without Concurrent, the error matches ErrBadArgument.
func (l *Limiter) Acquire(ctx context.Context) (*lease.Lease, error) {
	return l.acquire(ctx, "acquire", lease.Locker.Lock, func() error { return l.Wait(ctx, 1) })
}

// Locker returns the limiter as a Locker, for Do and any other function that takes a Locker. The Lock of
// the Locker is Acquire. The TryLock of the Locker takes a lease and a unit as Acquire does, but does
// not wait. If no lease or no unit is free, the error of TryLock matches ErrBusy.
func (l *Limiter) Locker() lease.Locker { return locker{l} }

type locker struct{ *Limiter }

func (l locker) Lock(ctx context.Context) (*lease.Lease, error) { return l.Acquire(ctx) }

func (l locker) TryLock(ctx context.Context) (*lease.Lease, error) {
	return l.acquire(ctx, "try acquire", lease.Locker.TryLock, func() error {
		d, err := l.Allow(ctx, 1)
		if err == nil && !d.Allowed {
			err = l.fail("try acquire", late(d.RetryAfter))
		}
		return err
	})
}

func (l locker) LeaseFrom(ctx context.Context) (held *lease.Lease, ok bool) {
	if l.usable() != nil || l.family.permits == nil {
		return nil, false
	}
	return l.family.permits.LeaseFrom(ctx)
}

type locking func(lease.Locker, context.Context) (*lease.Lease, error)

func (l *Limiter) acquire(ctx context.Context, op string, lock locking, pace func() error) (*lease.Lease, error) {
	if err := l.usable(); err != nil {
		return nil, l.fail(op, err)
	}
	if l.family.permits == nil {
		return nil, l.fail(op, fmt.Errorf("it was made without Concurrent: %w", errs.BadArgument))
	}
	if err := l.family.concurrency.ensure(ctx, l.family); err != nil {
		return nil, l.fail(op, errs.Bare(err))
	}
	held, err := lock(l.family.permits.Locker(1), ctx)
	if errors.Is(err, errs.NoPermits) { // Redis has lost its data since
		if err = l.family.permits.SetPermits(ctx, l.family.concurrent); err == nil {
			held, err = lock(l.family.permits.Locker(1), ctx)
		}
	}
	if err != nil {
		return nil, l.fail(op, errs.Bare(err))
	}
	if err := pace(); err != nil {
		_ = held.Release(ctx)
		return nil, err
	}
	return held, nil
}

// ensure makes sure once that there are as many leases as Concurrent says.
func (c *concurrency) ensure(ctx context.Context, f *family) error {
	c.mu.Lock()
	set := c.set
	c.mu.Unlock()
	if set {
		return nil
	}
	n, err := f.permits.Permits(ctx)
	if err == nil && n != f.concurrent {
		err = f.permits.SetPermits(ctx, f.concurrent)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = true
	return nil
}
