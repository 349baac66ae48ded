// These cases are about Do and SyncLocker, which take a Locker.

package lockertest

import (
	"context"
	"errors"
	"slices"
	"sync"
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
}

func doThatLoses(w *stage) {
	c := w.process()
	stopped := errors.New("work stopped")
	err := holdfast.Do(w.patient(), w.locker(c, holdfast.Fixed(2*time.Second)), func(ctx context.Context) error {
		<-ctx.Done()
		w.matches("cause", context.Cause(ctx), holdfast.ErrLost)
		return stopped
	})
	w.matches("Do", err, stopped, holdfast.ErrLost)
	w.soonFree(w.rival(c))
}

func syncLocker(w *stage) {
	const rounds = 5
	var (
		book    ledger
		workers sync.WaitGroup
	)
	for range 2 {
		c := w.process()
		writers := holdfast.SyncLocker(w.patient(), w.rival(c))
		readers := holdfast.SyncLocker(w.patient(), w.locker(c))
		for range 2 {
			workers.Go(func() {
				for range rounds {
					writers.Lock()
					book.write(w)
					writers.Unlock()
					if w.s.Shared {
						readers.Lock()
						book.read(w)
						readers.Unlock()
					}
				}
			})
		}
	}
	workers.Wait()
	if got := book.sum.Load(); got != 4*rounds {
		w.Inexcusable("%d of %d steps count: two were inside", got, 4*rounds)
	}

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
