// Calls of a test, and what it wants of them.

package world

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
)

// patience is how long a test waits in virtual time: a wait that never ends fails it in words.
const patience = 10 * time.Minute

// Lock locks a mutex or fails the test.
func (w *World) Lock(ctx context.Context, m lease.Locker) *lease.Lease {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	l, err := m.Lock(ctx)
	if err != nil {
		w.T.Fatalf("at %v: %v", w.Now(), err)
	}
	return l
}

// Release releases the leases, and fails the test on an error.
func (w *World) Release(leases ...*lease.Lease) {
	w.T.Helper()
	for _, l := range leases {
		if err := l.Release(w.T.Context()); err != nil {
			w.T.Errorf("at %v: %v", w.Now(), err)
		}
	}
}

// Attempt is a call under way on a goroutine of its own.
type Attempt struct {
	Done  chan struct{}
	Lease *lease.Lease
	Err   error
	At    time.Duration // when it returned
}

// GoLock locks on a goroutine of its own.
func (w *World) GoLock(ctx context.Context, m lease.Locker) *Attempt {
	return w.Try(func() (*lease.Lease, error) { return m.Lock(ctx) })
}

// Try calls f on a goroutine of its own.
func (w *World) Try(f func() (*lease.Lease, error)) *Attempt {
	a := &Attempt{Done: make(chan struct{})}
	go func() {
		defer close(a.Done)
		a.Lease, a.Err = f()
		a.At = w.Now()
	}()
	return a
}

// Result waits for an attempt.
func (a *Attempt) Result() (*lease.Lease, error) {
	select {
	case <-a.Done:
		return a.Lease, a.Err
	case <-time.After(patience):
		return nil, fmt.Errorf("it has waited for %v", patience)
	}
}

// Pending says whether an attempt has not returned yet.
func (a *Attempt) Pending() bool {
	synctest.Wait()
	select {
	case <-a.Done:
		return false
	default:
		return true
	}
}

// WantErr fails the test unless err matches each target.
func WantErr(t *testing.T, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error %v, want one that matches %q", err, target)
		}
	}
}

// WantEnd fails the test unless ctx ended with that cause.
func WantEnd(t *testing.T, ctx context.Context, cause error) {
	t.Helper()
	if cause == nil {
		if ctx.Err() != nil {
			t.Errorf("the context has ended: %v", context.Cause(ctx))
		}
		return
	}
	if ctx.Err() == nil {
		t.Errorf("the context has not ended, want %v", cause)
		return
	}
	WantErr(t, context.Cause(ctx), cause)
}

// Equal is redistest.Equal.
func Equal[T comparable](t testing.TB, got, want T, format string, more ...any) {
	t.Helper()
	redistest.Equal(t, got, want, format, more...)
}

// Within fails the test unless d is from least to most.
func Within(t *testing.T, what string, d, least, most time.Duration) {
	t.Helper()
	if d < least || d > most {
		t.Errorf("%s: %v, want from %v to %v", what, d, least, most)
	}
}
