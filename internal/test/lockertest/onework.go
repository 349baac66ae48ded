// These cases are about Once and Tick, which are no Lockers.

package lockertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/once"
)

// Onces runs the cases of Once and Tick. keeps is as in Kind.
func Onces(t *testing.T, r Redis, keeps []string) {
	runCases(t, Subject{Redis: r, Kind: Kind{Name: "once", Keeps: keeps}}, []testCase{
		{"all have the result of one", nil, allHaveOneResult},
		{"under way", nil, workUnderWay},
		{"work that fails", nil, workThatFails},
		{"a process that is gone", nil, workerIsGone},
		{"a tick has one winner", nil, tickHasOneWinner},
	})
}

// once returns the Once of the case, as that process has it.
func (w *stage) once(c *holdfast.Client, options ...once.Option) *once.Once {
	return c.Once(w.name, append([]once.Option{once.Keep(time.Hour), once.Lease(lease.Renewed(length))}, options...)...)
}

// forgetful starts two processes that forget those keys, whose results may stand from an earlier run of the case.
func (w *stage) forgetful(keys ...string) (a, b *holdfast.Client) {
	w.Helper()
	a, b = w.process(), w.process()
	for _, key := range keys {
		if err := w.once(a).Forget(w.patient(), key); err != nil {
			w.Fatalf("Forget: %v", err)
		}
	}
	return a, b
}

// value fails the test unless that is the value of k, whether it is known or the work gives it now.
func (w *stage) value(what string, o *once.Once, key string, gives, want int) {
	w.Helper()
	got, err := once.Value(w.patient(), o, key, func(context.Context) (int, error) { return gives, nil })
	if got != want || err != nil {
		w.Errorf("%s has %d, %v; want %d", what, got, err, want)
	}
}

// allHaveOneResult makes callers of two processes ask at the same time, and later. The work lasts for longer than its
// lease.
func allHaveOneResult(w *stage) {
	a, b := w.forgetful("customer:7")
	var runs atomic.Int32
	begun, done := make(chan struct{}), make(chan struct{})
	results := make(chan int, 9)
	var callers sync.WaitGroup
	call := func(c *holdfast.Client) {
		callers.Go(func() {
			got, err := once.Value(w.patient(), w.once(c), "customer:7", func(ctx context.Context) (int, error) {
				if runs.Add(1) == 1 {
					close(begun)
					<-done
				}
				return int(once.Token(ctx)), ctx.Err()
			})
			if err != nil {
				w.Errorf("Value: %v", err)
			}
			results <- got
		})
	}
	call(a)
	w.await("the beginning of the work", begun)
	for range 4 {
		call(a)
		call(b)
	}
	time.Sleep(length + 500*time.Millisecond)
	close(done)
	callers.Wait()
	first := <-results
	for range 8 {
		if got := <-results; got != first {
			w.Errorf("callers have %d and %d", first, got)
		}
	}
	w.value("a later caller", w.once(b), "customer:7", -1, first)
	if n := runs.Load(); n != 1 || first == 0 {
		w.Errorf("the work was done %d times, and gave %d", n, first)
	}
}

// workThatFails shows that an error is not kept, unless it is to be: a caller that waits does its own work.
func workThatFails(w *stage) {
	a, b := w.forgetful("k", "kept")
	failed := errors.New("work failed")
	var next sync.WaitGroup
	got, err := once.Value(w.patient(), w.once(a), "k", func(context.Context) (int, error) {
		next.Go(func() { w.value("the caller that waited", w.once(b), "k", 2, 2) })
		time.Sleep(200 * time.Millisecond)
		return 1, failed
	})
	if w.matches("Value", err, failed); got != 1 {
		w.Errorf("Value = %d beside its error", got)
	}
	next.Wait()
	w.value("a later caller", w.once(a), "k", 3, 2)

	fails := func(context.Context) (int, error) { return 0, failed }
	_, err = once.Value(w.patient(), w.once(a, once.KeepErrors(time.Hour)), "kept", fails)
	w.matches("Value", err, failed)
	_, err = once.Value(w.patient(), w.once(b), "kept", fails)
	w.matches("Value of what has failed", err, holdfast.ErrWorkFailed)
}

// workUnderWay shows what others may do meanwhile, that a result can be forgotten, and that it is one of a payload.
func workUnderWay(w *stage) {
	a, b := w.forgetful("k")
	first, again := int64(0), int64(0)
	print1, print2 := once.Fingerprint([]byte("one")), once.Fingerprint([]byte("two"))
	nothing := func(context.Context) error { return nil }
	err := once.Do(w.patient(), w.once(a), "k", func(ctx context.Context) error {
		first = once.Token(ctx)
		w.matches("Do with OnBusy(Fail)", once.Do(w.patient(), w.once(b, once.OnBusy(once.Fail)), "k", nothing), holdfast.ErrBusy)
		short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		w.matches("Do with a deadline", once.Do(short, w.once(b), "k", nothing), holdfast.ErrBusy, context.DeadlineExceeded)
		w.matches("Forget", w.once(b).Forget(w.patient(), "k"), holdfast.ErrBusy)
		return nil
	})
	if err := errors.Join(err, w.once(b).Forget(w.patient(), "k")); err != nil {
		w.Errorf("Do, Forget: %v", err)
	}
	err = once.Do(w.patient(), w.once(b, print1), "k", func(ctx context.Context) error { again = once.Token(ctx); return nil })
	if err != nil || again <= first || first == 0 {
		w.Errorf("done again after Forget: %v, token %d after %d", err, again, first)
	}
	w.matches("Do of another payload", once.Do(w.patient(), w.once(a, print2), "k", nothing), holdfast.ErrMismatch)
	if err := once.Do(w.patient(), w.once(a, print1), "k", nothing); err != nil {
		w.Errorf("Do of the same payload: %v", err)
	}
}

// workerIsGone shows that another takes over when the lease of work is over whose process is gone.
func workerIsGone(w *stage) {
	a, b := w.forgetful("k")
	var closed time.Time
	first := int64(0)
	err := once.Do(w.patient(), w.once(a), "k", func(ctx context.Context) error {
		first = once.Token(ctx)
		if err := a.Close(); err != nil {
			w.Errorf("Close: %v", err)
		}
		closed = time.Now()
		w.endedBy(ctx, holdfast.ErrClosed)
		return nil
	})
	w.matches("Do", err, holdfast.ErrClosed)
	err = once.Do(w.patient(), w.once(b), "k", func(ctx context.Context) error {
		w.promptly("another took over", closed.Add(length), time.Now())
		if token := once.Token(ctx); token <= first {
			w.Errorf("token %d after %d", token, first)
		}
		return nil
	})
	if err != nil {
		w.Errorf("Do of the next: %v", err)
	}
}

func tickHasOneWinner(w *stage) {
	at, won := time.Now(), 0
	for range 3 {
		c := w.process()
		for range 2 {
			ok, err := c.Tick(w.patient(), w.name, at, time.Hour)
			if err != nil {
				w.Errorf("Tick: %v", err)
			}
			if ok {
				won++
			}
		}
	}
	if won != 1 {
		w.Errorf("a tick was won %d times", won)
	}
}
