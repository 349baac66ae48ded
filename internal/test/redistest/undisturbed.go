// Some tests need leases and deadlines of about a second to last, on a machine that may stand still
// for longer.

package redistest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
)

// undisturbedTries is how often Undisturbed calls a test at the most.
const undisturbedTries = 5

// Undisturbed calls f. If f fails, it checks whether this process went without the processor for
// the time still at a stretch during the call. If so, leases of f may have been lost rightly, and
// its deadlines may have passed: such a failure means nothing, and Undisturbed calls f again, up to
// five times in all. A failure on a machine that did not stand still fails t at once; so does the
// fifth failure on any machine.
//
// Some failures are not explained by any lease or deadline, such as two holders of a lease that
// is longer than any machine stands still. f reports these by Inexcusable, which fails t at
// once.
//
// f is given a testing.TB in place of t: the clean-ups of that TB run, and its context ends, when f
// returns.
func Undisturbed(t testing.TB, still time.Duration, f func(t testing.TB)) {
	t.Helper()
	p := FeelPulse(t)
	for try := 1; ; try++ {
		began := time.Now()
		a := &attempt{TB: t}
		a.play(f)
		switch stood := p.Longest(began, time.Now()); {
		case a.skipped && !a.failed:
			t.SkipNow()
		case !a.failed:
			return
		case a.broken || stood < still || try == undisturbedTries:
			t.FailNow()
		default:
			t.Logf("the machine stood still for %v: once more", stood)
		}
	}
}

// Inexcusable is t.Errorf for failures that a machine that stands still does not explain: it
// fails the test, within Undisturbed too.
func Inexcusable(t testing.TB, format string, args ...any) {
	t.Helper()
	if a, ok := t.(interface {
		Inexcusable(format string, args ...any)
	}); ok {
		a.Inexcusable(format, args...)
		return
	}
	t.Errorf(format, args...)
}

// attempt is a testing.TB whose failure does not yet fail the test.
type attempt struct {
	testing.TB

	ctx context.Context

	mu       sync.Mutex
	failed   bool
	broken   bool // by an inexcusable failure
	skipped  bool
	cleanups []func()
}

// play runs f and then its clean-ups, on a goroutine of its own, which FailNow ends.
func (a *attempt) play(f func(t testing.TB)) {
	var cancel context.CancelFunc
	a.ctx, cancel = context.WithCancel(a.TB.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer a.cleanUp()
		defer cancel()
		f(a)
	}()
	<-done
}

// cleanUp runs the remaining clean-ups, the last one first, even if one of them calls FailNow.
func (a *attempt) cleanUp() {
	a.mu.Lock()
	last := len(a.cleanups) - 1
	if last < 0 {
		a.mu.Unlock()
		return
	}
	f := a.cleanups[last]
	a.cleanups = a.cleanups[:last]
	a.mu.Unlock()
	defer a.cleanUp()
	f()
}

func (a *attempt) Cleanup(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cleanups = append(a.cleanups, f)
}

func (a *attempt) Context() context.Context { return a.ctx }

func (a *attempt) Fail() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = true
}

func (a *attempt) Failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failed || a.TB.Failed()
}

func (a *attempt) FailNow() {
	a.Fail()
	runtime.Goexit()
}

func (a *attempt) Error(args ...any) {
	a.Helper()
	a.Log(args...)
	a.Fail()
}

func (a *attempt) Errorf(format string, args ...any) {
	a.Helper()
	a.Error(fmt.Sprintf(format, args...))
}

// Inexcusable is Errorf for failures that the machine does not explain.
func (a *attempt) Inexcusable(format string, args ...any) {
	a.Helper()
	a.Errorf(format, args...)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = true
}

func (a *attempt) Fatal(args ...any) {
	a.Helper()
	a.Log(args...)
	a.FailNow()
}

func (a *attempt) Fatalf(format string, args ...any) {
	a.Helper()
	a.Fatal(fmt.Sprintf(format, args...))
}

func (a *attempt) Skip(args ...any) {
	a.Helper()
	a.Log(args...)
	a.SkipNow()
}

func (a *attempt) Skipf(format string, args ...any) {
	a.Helper()
	a.Skip(fmt.Sprintf(format, args...))
}

func (a *attempt) SkipNow() {
	a.mu.Lock()
	a.skipped = true
	a.mu.Unlock()
	runtime.Goexit()
}

func (a *attempt) Skipped() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.skipped
}
