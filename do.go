// Do: lock, run the work, release.

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/errs"
)

// Lockable is anything that Do can lock: any Locker, a MultiLock or a Quorum. A MultiLock and a Quorum are
// not Lockers, because their Lock methods return types of their own.
type Lockable[H Handle] interface {
	Lock(ctx context.Context) (H, error)
}

// Handle has the methods that Do needs of the value that Lock returns.
type Handle interface {
	Name() string
	Context(parent context.Context) context.Context
	Release(ctx context.Context) error
}

// Do runs work under the lock. Do waits for the lock as long as ctx and WaitAtMost allow. The context that
// work gets is cancelled if the lock is lost. When work returns or panics, Do releases the lock.
//
// If the lock is not granted, work does not run, and the error says why: it matches ErrBusy if another
// caller held the lock until the wait ended. If the lock is granted, Do returns work's error. If the lock
// was lost while work ran, or if the release failed, Do also returns that second error, joined to work's
// error, so that errors.Is finds both. If work's error already matches the second error, for example
// because work returned context.Cause of its context, Do does not add the second error. If a fixed lease
// ends before work returns, that counts as lost, with ErrExpired.
//
// The error does not say whether work ran, because ErrLost, ErrUnavailable and ErrClosed may come from Lock
// or from the release. If you need to know, let work record that it has begun.
func Do[H Handle](ctx context.Context, locker Lockable[H], work func(ctx context.Context) error, options ...DoOption) error {
	_, err := DoValue(ctx, locker, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, work(ctx)
	}, options...)
	return err
}

// DoValue is Do for work that returns a value. DoValue returns work's value even if it also returns an
// error, because only the caller can decide whether the value counts after the lock was lost. If the lock
// is not granted, DoValue returns the zero value.
func DoValue[H Handle, T any](ctx context.Context, locker Lockable[H], work func(ctx context.Context) (T, error), options ...DoOption) (value T, err error) {
	var d doing
	for _, o := range options {
		if o != nil {
			o(&d)
		}
	}
	l, err := lock(ctx, locker, d.wait, d.pausable)
	if err != nil {
		return value, err
	}
	if d.atLeast != 0 {
		if err := stay(ctx, l, d.atLeast); err != nil {
			return value, together(err, l.Release(ctx))
		}
	}
	held := l.Context(ctx)
	returned := false
	defer func() {
		if !returned {
			err = errUnfinished // and the panic, or Goexit, goes on after this
		}
		err = together(err, l.Release(ctx))
		if d.onExit != nil {
			d.onExit(ctx, l, err)
		}
	}()
	if d.onAcquire != nil {
		d.onAcquire(held, l)
	}
	value, err = work(held)
	returned = true
	return value, err
}

// lock locks as WaitAtMost and Pausable say. If atMost is nil, ctx alone bounds the wait.
func lock[H Handle](ctx context.Context, locker Lockable[H], atMost *time.Duration, pausable bool) (H, error) {
	pausing := func(ctx context.Context, lockIt func(context.Context) (H, error), once bool) (H, error) {
		if !pausable {
			return lockIt(ctx)
		}
		return unpaused(ctx, lockIt, once)
	}
	if atMost == nil {
		return pausing(ctx, locker.Lock, false)
	}
	if *atMost > 0 {
		wait, cancel := context.WithTimeout(ctx, *atMost)
		defer cancel()
		return pausing(wait, locker.Lock, false)
	}
	tries, can := locker.(interface {
		TryLock(ctx context.Context) (H, error)
	})
	if can && *atMost == 0 {
		return pausing(ctx, tries.TryLock, true)
	}
	why := fmt.Errorf("a wait of at most %v: %w", *atMost, ErrBadArgument)
	if !can {
		why = fmt.Errorf("%T has no TryLock: %w", locker, ErrBadArgument)
	}
	var none H
	return none, errs.Wrap("do", why)
}

// stay makes what Lock returned stay held for that long.
func stay(ctx context.Context, held Handle, d time.Duration) error {
	stays, can := held.(interface {
		AtLeast(ctx context.Context, d time.Duration) error
	})
	if !can {
		return errs.Wrap("do", fmt.Errorf("a lease of type %T cannot stay after its release: %w", held, ErrBadArgument))
	}
	return stays.AtLeast(ctx, d)
}

// together returns the errors of work and of the release as one error, on one line. If work's error
// already matches all that the release's error matches, it returns work's error alone.
func together(err, released error) error {
	switch {
	case released == nil || err != nil && !adds(err, released):
		return err
	case err == nil:
		return released
	default:
		return fmt.Errorf("%w; %w", err, released)
	}
}

// adds reports whether more contains any error that err does not match.
func adds(err, more error) bool {
	switch made := more.(type) { //nolint:errorlint // it goes down the tree itself
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(made.Unwrap(), func(one error) bool { return adds(err, one) })
	case interface{ Unwrap() error }:
		if inner := made.Unwrap(); inner != nil {
			return adds(err, inner)
		}
	}
	return !errors.Is(err, more)
}

// errUnfinished is the error that an exit hook gets for work that did not return.
var errUnfinished = errors.New("holdfast: do: work panicked or ended its goroutine")

// DoOption configures one call of Do or DoValue.
type DoOption func(*doing)

type doing struct {
	wait      *time.Duration // the most that the lock is waited for; nil: as long as ctx allows
	pausable  bool           // it heeds a pause
	atLeast   time.Duration  // for how long the lock stays; 0: until it is released
	onAcquire func(ctx context.Context, held Handle)
	onExit    func(ctx context.Context, held Handle, err error)
}

// WaitAtMost makes Do wait for the lock for at most d, and not longer than ctx allows. It does not bound
// the work. If d is 0, Do asks once, by TryLock. If d is negative, or if d is 0 and the Lockable has no
// TryLock, Do's error matches ErrBadArgument.
//
// If the lock is not granted, Do returns the error that Lock returns for a context that ends after d, or
// that TryLock returns if d is 0. If another caller held the lock all the time, the error matches ErrBusy.
// If Redis did not answer in time, the error matches ErrUnavailable. If d is 0, Redis has 3 s to answer. If
// d ended the wait, the error also matches context.DeadlineExceeded.
func WaitAtMost(d time.Duration) DoOption {
	return func(o *doing) { o.wait = &d }
}

// AtLeast keeps the lock held until d after its grant, even if work returns sooner, fails or panics. Do
// itself returns when work returns. Until d is over, nobody else is granted the lock, even if the process
// ends. Use AtLeast for a job that several processes start, each by its own clock: at least d passes from
// the grant of one run to the grant of the next run. AtLeast corresponds to ShedLock's lockAtLeastFor.
// lease.Lease.AtLeast says how long the lock stays held after a crash.
//
// AtLeast works for a Mutex, a FairMutex and a stripe. It also works for a Lockable of your own if the
// handle has the method AtLeast of a Lease. For any other lock, or if d is negative, work does not run, and
// Do's error matches ErrBadArgument. If d is longer than the lease, Do sends one more request. If that
// request fails, work does not run.
func AtLeast(d time.Duration) DoOption {
	return func(o *doing) { o.atLeast = d }
}

// OnAcquire makes Do call hook after the grant and before work. hook gets work's context and the value that
// Lock returned: a *Lease, a *MultiLease, a *QuorumLease, or the Handle of a Lockable of your own.
// held.Name() is the name of the lock. If hook panics, work does not run, and Do releases the lock.
func OnAcquire(hook func(ctx context.Context, held Handle)) DoOption {
	return func(d *doing) { d.onAcquire = hook }
}

// OnExit makes Do call hook after it has released the lock. hook gets the value that Lock returned, which
// has ended by then, and the error that Do returns. Do also calls hook if work failed or panicked. Do does
// not call hook if the lock was not granted.
func OnExit(hook func(ctx context.Context, held Handle, err error)) DoOption {
	return func(d *doing) { d.onExit = hook }
}
