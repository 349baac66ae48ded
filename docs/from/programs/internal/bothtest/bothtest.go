// Package bothtest tests what works under a lock of another library and one of Holdfast. Only tests import it.
package bothtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/clienttest"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Locks are the locks that Both takes, as another process has them.
type Locks struct {
	Both func(ctx context.Context, work func(context.Context) error) error
	Old  func(ctx context.Context) (release func(), err error)
	New  holdfast.Locker

	OldIsTaken  func(error) bool // whether Old refuses since somebody has the lock
	BothIsEnded func(error) bool // whether Both gives up waiting for the old lock
}

// Exclude fails t unless nobody has either lock while Both works, and whoever has one of them keeps it out.
func Exclude(t testing.TB, ctx context.Context, l Locks) {
	t.Helper()
	worked := 0
	work := func(context.Context) error {
		worked++
		short, cancel := soon(ctx)
		defer cancel()
		release, err := l.Old(short)
		if err == nil {
			release()
		}
		if !l.OldIsTaken(err) {
			t.Errorf("the old lock beside it: %v", err)
		}
		if n, err := l.New.TryLock(ctx); !errors.Is(err, holdfast.ErrBusy) {
			_ = n.Release(ctx)
			t.Errorf("Holdfast beside it: %v", err)
		}
		return nil
	}
	both := func() error {
		short, cancel := soon(ctx)
		defer cancel()
		return l.Both(short, work)
	}
	redistest.Check(t, l.Both(ctx, work))

	release, err := l.Old(ctx)
	redistest.Must(t, err)
	if err := both(); !l.BothIsEnded(err) {
		t.Errorf("beside a holder of the old lock: %v", err)
	}
	release()

	held := clienttest.Grab(t, l.New)
	redistest.Is(t, "beside a holder of the new lock", both(), holdfast.ErrBusy)
	clienttest.GiveBack(t, held)

	if err := l.Both(ctx, work); err != nil || worked != 2 {
		t.Errorf("worked %d times, %v; want 2: neither lock is left behind", worked, err)
	}
}

// soon bounds a wait for what is taken.
func soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 300*time.Millisecond)
}

// Is returns a function that says whether an error is that one.
func Is(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
