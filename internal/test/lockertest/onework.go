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
		{"work that fails", nil, workThatFails},
		{"under way", nil, workUnderWay},
		{"another payload", nil, anotherPayload},
		{"a process that is gone", nil, workerIsGone},
		{"a tick has one winner", nil, tickHasOneWinner},
	})
}

// onceLease is the lease of the work.
const onceLease = 4 * time.Second

// once returns the Once of the case, as that process has it.
func (w *stage) once(c *holdfast.Client, options ...once.Option) *once.Once {
	return c.Once(w.name, append([]once.Option{once.Keep(time.Hour), once.Lease(lease.Renewed(onceLease))}, options...)...)
}

// forget forgets those keys, whose results may stand from an earlier run of the case.
func (w *stage) forget(c *holdfast.Client, keys ...string) {
	w.Helper()
	for _, key := range keys {
		if err := w.once(c).Forget(w.patient(), key); err != nil {
			w.Fatalf("Forget: %v", err)
		}
	}
}

// have fails the test unless the call had that value.
func (w *stage) have(what string, got int, err error, want int) {
	w.Helper()
	if got != want || err != nil {
		w.Errorf("%s has %d, %v; want %d", what, got, err, want)
	}
}

// gives is work with that value.
func gives(n int) func(context.Context) (int, error) {
	return func(context.Context) (int, error) { return n, nil }
}

// allHaveOneResult has three processes ask at the same time, and later.
func allHaveOneResult(w *stage) {
	processes := []*holdfast.Client{w.process(), w.process(), w.process()}
	for _, key := range []string{"7", "customer:7"} {
		w.forget(processes[0], key)
		var runs atomic.Int32
		begun, done := make(chan struct{}), make(chan struct{})
		work := func(ctx context.Context) (int, error) {
			if runs.Add(1) == 1 {
				close(begun)
				<-done
			}
			return int(once.Token(ctx)), ctx.Err()
		}
		results := make(chan int, 9)
		var callers sync.WaitGroup
		call := func(c *holdfast.Client) {
			callers.Go(func() {
				got, err := once.Value(w.patient(), w.once(c), key, work)
				if err != nil {
					w.Errorf("Value: %v", err)
				}
				results <- got
			})
		}
		call(processes[0])
		select {
		case <-begun:
		case <-time.After(patience):
			w.Fatalf("nobody does the work of %q", key)
		}
		for i := range 8 {
			call(processes[i%3])
		}
		if key == "7" {
			time.Sleep(onceLease + 500*time.Millisecond) // the work lasts for longer than its lease
		}
		close(done)
		callers.Wait()
		first := <-results
		for range 8 {
			w.have("a caller", <-results, nil, first)
		}
		got, err := once.Value(w.patient(), w.once(processes[1]), key, gives(-1))
		w.have("a later caller", got, err, first)
		// It may be done again after a worker that stood still for the length of its lease.
		if n := runs.Load(); n != 1 || first == 0 {
			w.Errorf("the work of %q was done %d times, and gave %d", key, n, first)
		}
	}
}

// workThatFails shows that an error is not kept: a caller that waits does its own work.
func workThatFails(w *stage) {
	a, b := w.process(), w.process()
	w.forget(a, "k", "kept")
	failed := errors.New("work failed")
	next := make(chan error, 1)
	got, err := once.Value(w.patient(), w.once(a), "k", func(context.Context) (int, error) {
		begun := make(chan struct{})
		go func() {
			close(begun)
			got, err := once.Value(w.patient(), w.once(b), "k", gives(2))
			w.have("the caller that waited", got, err, 2)
			next <- err
		}()
		<-begun
		time.Sleep(200 * time.Millisecond)
		return 1, failed
	})
	if w.matches("Value", err, failed); got != 1 {
		w.Errorf("Value = %d beside its error", got)
	}
	if err := <-next; err != nil {
		return
	}
	got, err = once.Value(w.patient(), w.once(a), "k", gives(3))
	w.have("a later caller", got, err, 2)

	_, err = once.Value(w.patient(), w.once(a, once.KeepErrors(time.Hour)), "kept", func(context.Context) (int, error) { return 0, failed })
	w.matches("Value", err, failed)
	_, err = once.Value(w.patient(), w.once(b), "kept", gives(1))
	w.matches("Value of what has failed", err, holdfast.ErrWorkFailed)
}

// workUnderWay shows what others may do meanwhile, and that a result can be forgotten.
func workUnderWay(w *stage) {
	a, b := w.process(), w.process()
	w.forget(a, "k")
	first, again := int64(0), int64(0)
	got, err := once.Value(w.patient(), w.once(a), "k", func(ctx context.Context) (int, error) {
		first = once.Token(ctx)
		_, err := once.Value(w.patient(), w.once(b, once.OnBusy(once.Fail)), "k", gives(2))
		w.matches("Value with OnBusy(Fail)", err, holdfast.ErrBusy)
		short, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		_, err = once.Value(short, w.once(b), "k", gives(2))
		w.matches("Value with a deadline", err, holdfast.ErrBusy, context.DeadlineExceeded)
		w.matches("Forget", w.once(b).Forget(w.patient(), "k"), holdfast.ErrBusy)
		return 1, nil
	})
	w.have("the caller", got, err, 1)
	if err := w.once(b).Forget(w.patient(), "k"); err != nil {
		w.Errorf("Forget: %v", err)
	}
	err = once.Do(w.patient(), w.once(b), "k", func(ctx context.Context) error { again = once.Token(ctx); return nil })
	if err != nil || again <= first || first == 0 {
		w.Errorf("done again after Forget: %v, token %d after %d", err, again, first)
	}
}

func anotherPayload(w *stage) {
	a, b := w.process(), w.process()
	w.forget(a, "k")
	got, err := once.Value(w.patient(), w.once(a, once.Fingerprint([]byte("one"))), "k", gives(1))
	w.have("the caller", got, err, 1)
	_, err = once.Value(w.patient(), w.once(b, once.Fingerprint([]byte("two"))), "k", gives(2))
	w.matches("Value of another payload", err, holdfast.ErrMismatch)
	got, err = once.Value(w.patient(), w.once(b, once.Fingerprint([]byte("one"))), "k", gives(2))
	w.have("a caller with the same payload", got, err, 1)
}

// workerIsGone shows that another takes over when the lease of work is over whose process is gone.
func workerIsGone(w *stage) {
	a, b := w.process(), w.process()
	w.forget(a, "k")
	var closed time.Time
	first := int64(0)
	_, err := once.Value(w.patient(), w.once(a), "k", func(ctx context.Context) (int, error) {
		first = once.Token(ctx)
		if err := a.Close(); err != nil {
			w.Errorf("Close: %v", err)
		}
		closed = time.Now()
		w.endedBy(ctx, holdfast.ErrClosed)
		return 1, nil
	})
	w.matches("Value", err, holdfast.ErrClosed)
	got, err := once.Value(w.patient(), w.once(b), "k", func(ctx context.Context) (int, error) {
		w.promptly("another took over", closed.Add(onceLease), time.Now())
		if token := once.Token(ctx); token <= first {
			w.Inexcusable("token %d after %d", token, first)
		}
		return 2, nil
	})
	w.have("the next", got, err, 2)
}

func tickHasOneWinner(w *stage) {
	at := time.Now()
	won := 0
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
		w.Inexcusable("a tick was won %d times", won)
	}
}
