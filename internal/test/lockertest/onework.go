// The case of Once, which is no Locker.

package lockertest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/once"
)

// Onces runs the case of Once. keeps is as in Kind.
func Onces(t *testing.T, r Redis, keeps []string) {
	runCases(t, Subject{Redis: r, Kind: Kind{Name: "once", Keeps: keeps}}, []testCase{
		{"all have the result of one", nil, allHaveOneResult},
	})
}

// allHaveOneResult makes callers of two processes ask at the same time, and later. The work lasts for longer than its
// lease, and its result cannot be forgotten meanwhile.
func allHaveOneResult(w *stage) {
	const key = "customer:7"
	a, b := w.process(), w.process()
	of := func(c *holdfast.Client) *once.Once {
		return c.Once(w.name, once.Keep(time.Hour), once.Lease(lease.Renewed(length)))
	}
	if err := of(a).Forget(w.patient(), key); err != nil { // it may stand from an earlier run
		w.Fatalf("Forget: %v", err)
	}
	var runs atomic.Int32
	begun, done := make(chan struct{}), make(chan struct{})
	results := make(chan int64, 10)
	var callers sync.WaitGroup
	call := func(c *holdfast.Client) {
		callers.Go(func() {
			got, err := once.Value(w.patient(), of(c), key, func(ctx context.Context) (int64, error) {
				if runs.Add(1) == 1 {
					close(begun)
					<-done
				}
				return once.Token(ctx), ctx.Err()
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
	w.matches("Forget of work under way", of(b).Forget(w.patient(), key), holdfast.ErrBusy)
	time.Sleep(length + 500*time.Millisecond)
	close(done)
	callers.Wait()
	call(b)
	callers.Wait()
	first := <-results
	for range 9 {
		if got := <-results; got != first {
			w.Errorf("callers have %d and %d", first, got)
		}
	}
	if n := runs.Load(); n != 1 || first == 0 {
		w.Errorf("the work was done %d times, and gave %d", n, first)
	}
}
