// These cases are about Do and SyncLocker, which take a Locker.

package lockertest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
)

func do(w *stage) {
	a, b := w.process(), w.process()
	failed := errors.New("work failed")
	var seen []string
	told := func(name string) string { // the name of a stripe has a number at its end
		return name[:min(len(name), len(w.name))]
	}
	err := holdfast.Do(w.patient(), w.locker(a), func(ctx context.Context) error {
		seen = append(seen, "work")
		w.busy(w.rival(b))
		if err := ctx.Err(); err != nil {
			w.Errorf("work's context has ended: %v", err)
		}
		return failed
	}, holdfast.OnAcquire(func(_ context.Context, held holdfast.Handle) { seen = append(seen, "acquired "+told(held.Name())) }),
		holdfast.OnExit(func(_ context.Context, held holdfast.Handle, err error) {
			seen = append(seen, "exit "+told(held.Name()))
			w.matches("exit hook", err, failed)
			w.free(w.rival(b))
		}))
	w.matches("Do", err, failed)
	if want := []string{"acquired " + w.name, "work", "exit " + w.name}; !slices.Equal(seen, want) {
		w.Errorf("run: %q, want %q", seen, want)
	}
	value, err := holdfast.DoValue(w.patient(), w.locker(a), func(context.Context) (int, error) { return 42, nil })
	if value != 42 || err != nil {
		w.Errorf("DoValue = %d, %v", value, err)
	}

	r := w.lock(w.rival(b))
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err = holdfast.Do(ctx, w.locker(a), func(context.Context) error {
		w.Error("work is run without the lock")
		return nil
	})
	w.matches("Do in vain", err, holdfast.ErrBusy, context.DeadlineExceeded)
	w.release(r)

	err = holdfast.Do(w.patient(), w.locker(a, holdfast.Fixed(2*time.Second)), func(ctx context.Context) error {
		w.endedBy(ctx, holdfast.ErrLost)
		return failed
	})
	w.matches("Do that loses the lock", err, failed, holdfast.ErrLost)
	w.soonFree(w.rival(b))
}

func syncLocker(w *stage) {
	w.contend(func(l holdfast.Locker) taker {
		s := holdfast.SyncLocker(w.patient(), l)
		return func() (func(), int64) {
			s.Lock()
			return s.Unlock, 0
		}
	})
	locker := holdfast.SyncLocker(w.patient(), w.locker(w.process()))
	w.panics("Unlock of what is not locked", nil, locker.Unlock)
	func() {
		locker.Lock()
		defer locker.Unlock()
	}()
	w.panics("Unlock, again", nil, locker.Unlock)
	w.panics("Lock with a bad argument", holdfast.ErrBadArgument, holdfast.SyncLocker(w.patient(), w.s.Locker(w.process(), "")).Lock)
}

// panics fails the test unless f panics, with an error that matches want.
func (w *stage) panics(what string, want error, f func()) {
	w.Helper()
	defer func() {
		w.Helper()
		r := recover()
		if err, _ := r.(error); r == nil || want != nil && !errors.Is(err, want) {
			w.Errorf("%s: recovered %v, want %v", what, r, want)
		}
	}()
	f()
}
