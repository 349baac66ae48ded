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

// Lockable is anything that Do can lock: any Locker, and a MultiLock or a Quorum, whose Lock
// returns a handle type of its own.
type Lockable[H Handle] interface {
	Lock(ctx context.Context) (H, error)
}

// Handle is the part of Lock's result that Do needs.
type Handle interface {
	Name() string
	Context(parent context.Context) context.Context
	Release(ctx context.Context) error
}

// Do runs work under the lock. It waits for the lock as long as ctx and WaitAtMost allow. It gives work
// a context that is cancelled if the lock is lost, and releases the lock when work returns or panics.
//
// If the lock is not granted, work does not run, and the error says why: ErrBusy if another held it
// until the wait ended. Otherwise Do returns work's error. If the lock was lost while work ran, or
// the release failed, Do joins the error that says so, and errors.Is finds both. Do leaves that
// error out if work's error matches it already, as an error made of context.Cause does. A fixed
// lease that ends before work does counts as lost, with ErrExpired.
//
// The error does not say whether work ran: ErrLost, ErrUnavailable and ErrClosed may come from Lock or
// from the release. If that matters, let work note that it has begun.
func Do[H Handle](ctx context.Context, locker Lockable[H], work func(ctx context.Context) error, options ...DoOption) error {
	_, err := DoValue(ctx, locker, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, work(ctx)
	}, options...)
	return err
}

// DoValue is Do for work that returns a value. It returns work's value even with an error: the
// caller decides whether the value counts if the lock was lost. If the lock is not granted, it
// returns the zero value.
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

// WaitAtMost makes Do wait for the lock for at most d, and for no longer than ctx allows. It does
// not bound the work. If d is 0, Do asks once, by TryLock. If d is negative, or is 0 and the Lockable
// has no TryLock, the error matches ErrBadArgument.
//
// The errors are those of Lock with a context that ends after d, or of TryLock if d is 0. If
// another held the lock all the time, the error matches ErrBusy. If Redis could not be asked, it
// matches ErrUnavailable; with 0, Redis has 3 s to answer. If d ended the wait, the error also
// matches context.DeadlineExceeded.
func WaitAtMost(d time.Duration) DoOption {
	return func(o *doing) { o.wait = &d }
}

// AtLeast makes the lock stay held until d after its grant, even if work returns sooner, fails or
// panics. Do returns when work does. Nobody is granted the lock before d is over, even if the process
// ends. It is for jobs that several processes start by their own clocks: at least d passes between two
// runs. It is ShedLock's lockAtLeastFor. See lease.Lease.AtLeast for what a crash leaves.
//
// It works for a Mutex, a FairMutex, a stripe, and a Lockable of your own whose handle has a
// Lease's method AtLeast. For any other lock, or if d is negative, work does not run, and the error
// matches ErrBadArgument. If d is longer than the lease, Do sends one more request; if that fails,
// work does not run.
func AtLeast(d time.Duration) DoOption {
	return func(o *doing) { o.atLeast = d }
}

// OnAcquire makes Do call hook after the grant and before work, with work's context and what Lock
// returned: a *Lease, a *MultiLease or a *QuorumLease, or the Handle of a Lockable of your own.
// held.Name() is the name of the lock. If hook panics, work does not run and the lock is released.
func OnAcquire(hook func(ctx context.Context, held Handle)) DoOption {
	return func(d *doing) { d.onAcquire = hook }
}

// OnExit makes Do call hook after it has released the lock, with what Lock returned, which has ended by
// then, and with the error that Do returns. Do also calls hook if work failed or panicked, but not if
// the lock was not granted.
func OnExit(hook func(ctx context.Context, held Handle, err error)) DoOption {
	return func(d *doing) { d.onExit = hook }
}
