// Do: lock, run the work, release.

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// Do runs work under the lock. It waits for the lock as long as ctx allows, gives work a
// context that is cancelled if the lock is lost, and releases the lock when work returns or
// panics.
//
// If the lock is not granted, work does not run, and the error says why: ErrBusy if another
// held it until ctx ended. Otherwise Do returns work's error. If the lock was lost while work
// ran, or the release failed, Do joins that error to it, so that errors.Is finds either. Do
// leaves that error out if work's error matches it already, as an error made of context.Cause
// does. A fixed lease that ends before work does counts as lost, with ErrExpired.
func Do[H Handle](ctx context.Context, locker Lockable[H], work func(ctx context.Context) error, options ...DoOption) error {
	_, err := DoValue(ctx, locker, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, work(ctx)
	}, options...)
	return err
}

// DoValue is Do for work that returns a value. It returns work's value whatever the error is:
// the caller decides whether the value counts when the lock was lost. If the lock is not
// granted, it returns the zero value.
func DoValue[H Handle, T any](ctx context.Context, locker Lockable[H], work func(ctx context.Context) (T, error), options ...DoOption) (value T, err error) {
	var d doing
	for _, o := range options {
		if o != nil {
			o(&d)
		}
	}
	l, err := locker.Lock(ctx)
	if err != nil {
		return value, err
	}
	held := l.Context(ctx)
	returned := false
	defer func() {
		if !returned {
			err = errUnfinished // and the panic, or Goexit, goes on after this
		}
		err = together(err, l.Release(ctx))
		if d.onExit != nil {
			d.onExit(ctx, l.Name(), err)
		}
	}()
	if d.onAcquire != nil {
		d.onAcquire(held, l.Name())
	}
	value, err = work(held)
	returned = true
	return value, err
}

// together returns the errors of work and of the release as one error, on one line. If the
// release's error adds nothing that work's error does not match, it returns work's error alone.
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
	onAcquire func(ctx context.Context, name string)
	onExit    func(ctx context.Context, name string, err error)
}

// OnAcquire makes Do call hook once it holds the lock, before work, with work's context and the
// name of the lock. If hook panics, work does not run and the lock is released.
func OnAcquire(hook func(ctx context.Context, name string)) DoOption {
	return func(d *doing) { d.onAcquire = hook }
}

// OnExit makes Do call hook after it has released the lock, with the name of the lock and the
// error that Do returns. Do calls hook also when work failed or panicked, but not when the lock
// was not granted.
func OnExit(hook func(ctx context.Context, name string, err error)) DoOption {
	return func(d *doing) { d.onExit = hook }
}
