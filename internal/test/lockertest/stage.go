// A case plays on a stage: a name, the processes that lock it, and the checks that many cases need.

package lockertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// wakeBound is far less than the time that a waiter sleeps if no message wakes it (0.9 to 1 s), and
// far more than the time that a message takes.
const wakeBound = 400 * time.Millisecond

// length is that of a lease which must last, on a machine that stands still for seconds too.
const length = 10 * time.Second

// patience bounds a wait that lasts this long only because of a defect.
const patience = time.Minute

// stage is where one case plays.
type stage struct {
	testing.TB
	s    Subject
	site Site
	name string

	mu        sync.Mutex
	processes []*holdfast.Client
}

// prepare makes a name ready to be locked.
func (w *stage) prepare(name string) {
	w.Helper()
	if w.s.Prepare == nil {
		return
	}
	if err := w.s.Prepare(w.patient(), w.process(), name); err != nil {
		w.Fatalf("prepare: %v", err)
	}
}

// process starts a process, which is a Client.
func (w *stage) process(options ...holdfast.Option) *holdfast.Client {
	c := w.site.Process(append(slices.Clip(w.s.Options), options...)...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = append(w.processes, c)
	return c
}

func (w *stage) closeAll() {
	w.mu.Lock()
	processes := slices.Clone(w.processes)
	w.mu.Unlock()
	for _, c := range processes {
		if err := c.Close(); err != nil {
			w.Errorf("Close: %v", err)
		}
	}
}

// locker returns the lock in a process, and rival returns the lock that it excludes.
func (w *stage) locker(c *holdfast.Client, options ...holdfast.LeaseOption) holdfast.Locker {
	return w.s.Locker(c, w.name, options...)
}

func (w *stage) rival(c *holdfast.Client, options ...holdfast.LeaseOption) holdfast.Locker {
	return w.s.rivalOf(c, w.name, options...)
}

// rivalOf returns the lock that the lock of that name excludes.
func (s Subject) rivalOf(c *holdfast.Client, name string, options ...holdfast.LeaseOption) holdfast.Locker {
	if s.Rival == nil {
		return s.Locker(c, name, options...)
	}
	return s.Rival(c, name, options...)
}

// patient returns a context that ends only because of a defect, or with the case.
func (w *stage) patient() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	w.Cleanup(cancel)
	return ctx
}

// lock returns a lease, or ends the case.
func (w *stage) lock(l holdfast.Locker) *holdfast.Lease {
	w.Helper()
	lease, err := l.Lock(w.patient())
	if err != nil {
		w.Fatalf("Lock: %v", err)
	}
	return lease
}

// release releases the lease, and fails the test on an error.
func (w *stage) release(l *holdfast.Lease) {
	w.Helper()
	if err := l.Release(w.patient()); err != nil {
		w.Errorf("Release: %v", err)
	}
}

// busy fails the test unless the lock is held by another owner.
func (w *stage) busy(l holdfast.Locker) {
	w.Helper()
	lease, err := l.TryLock(w.patient())
	w.matches("TryLock", err, holdfast.ErrBusy)
	if lease != nil {
		w.Error("TryLock returned a lease: held by two")
		w.release(lease)
	}
}

// free fails the test unless the lock is granted at once.
func (w *stage) free(l holdfast.Locker) {
	w.Helper()
	lease, err := l.TryLock(w.patient())
	if err != nil {
		w.Errorf("TryLock of what is free: %v", err)
		return
	}
	w.release(lease)
}

// soonFree is free, but it allows time for the clean-up after a wait that was given up.
func (w *stage) soonFree(l holdfast.Locker) {
	w.Helper()
	w.release(w.lock(l))
}

// lasts fails the test if the lease has ended.
func (w *stage) lasts(l *holdfast.Lease) {
	w.Helper()
	if err := l.Err(); err != nil {
		w.Errorf("the lease has ended: %v", err)
	}
	select {
	case <-l.Done():
		w.Error("Done is closed")
	default:
	}
}

// ended waits for the end of the lease, which must have that cause.
func (w *stage) ended(l *holdfast.Lease, cause error) {
	w.Helper()
	w.await("the lease", l.Done())
	w.matches("Err", l.Err(), cause)
}

// endedBy waits for the end of a context, which must have that cause. The context of a lease ends a
// moment after the lease.
func (w *stage) endedBy(ctx context.Context, cause error) {
	w.Helper()
	w.await("the context", ctx.Done())
	w.matches("cause", context.Cause(ctx), cause)
}

// promptly fails the test unless what was due at an instant came at once, in virtual time.
func (w *stage) promptly(what string, due, came time.Time) {
	w.Helper()
	if late := came.Sub(due); w.s.Virtual && late > wakeBound {
		w.Errorf("%s after %v, want at most %v", what, late, wakeBound)
	}
}

// matches fails the test unless err matches each of the targets.
func (w *stage) matches(what string, err error, targets ...error) {
	w.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			w.Errorf("%s: error %v, want one that matches %q", what, err, target)
		}
	}
}

// attempt is a Lock on a goroutine of its own.
type attempt struct {
	done  chan struct{}
	lease *holdfast.Lease
	err   error
	at    time.Time // when Lock returned
}

func (w *stage) goLock(ctx context.Context, l holdfast.Locker) *attempt {
	a := &attempt{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.lease, a.err = l.Lock(ctx)
		a.at = time.Now()
	}()
	return a
}

// await ends the case unless the channel is closed in time.
func (w *stage) await(what string, done <-chan struct{}) {
	w.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		w.Fatalf("%s does not end", what)
	}
}

// granted waits for the attempt, which must be granted.
func (w *stage) granted(a *attempt) *holdfast.Lease {
	w.Helper()
	if w.await("Lock", a.done); a.err != nil {
		w.Fatalf("Lock: %v", a.err)
	}
	return a.lease
}

// refused waits for the attempt, which must end with an error that matches the targets.
func (w *stage) refused(a *attempt, targets ...error) {
	w.Helper()
	w.await("Lock", a.done)
	if w.matches("Lock", a.err, targets...); a.lease != nil {
		w.Error("a lease beside the error")
	}
}

// waits fails the test unless the attempt has not returned after d.
func (w *stage) waits(a *attempt, d time.Duration) {
	w.Helper()
	select {
	case <-a.done:
		w.Fatalf("Lock returned, error %v: it should wait", a.err)
	case <-time.After(d):
	}
}

// nothingLeft fails the test unless every key of the name is soon gone, except the keys that are to stay.
func (w *stage) nothingLeft() {
	w.Helper()
	if w.Failed() {
		return // the first failure says more
	}
	if w.s.Virtual {
		redistest.LeftBehind(w, w.site.Onlooker, w.s.Keeps...)
		return
	}
	redistest.Eventually(w, 10*time.Second, "nothing is left", func() error {
		all, err := redistest.Keys(context.Background(), w.site.Onlooker, "*"+w.name+"*") // other cases use this Redis too
		left := slices.DeleteFunc(all, func(key string) bool {
			return slices.ContainsFunc(w.s.Keeps, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
		})
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%q", left)
		}
		return err
	})
}
