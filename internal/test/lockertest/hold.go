// These cases are about holders: exclusion, re-entry, tokens.

package lockertest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

func excludesAnotherProcess(w *stage) {
	a, b := w.process(), w.process()
	l := w.lock(w.locker(a))
	w.busy(w.rival(b))
	w.lasts(l)
	w.release(l)

	r := w.lock(w.rival(b))
	w.busy(w.locker(a))
	w.lasts(r)
	w.release(r)
	w.free(w.locker(a))
}

func excludesAnotherGoroutine(w *stage) {
	c := w.process()
	locker, rival := w.locker(c), w.rival(c)
	l := w.lock(locker)
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() { w.busy(rival) })
	}
	others.Wait()
	w.release(l)
	r := w.lock(rival)
	for range 4 {
		others.Go(func() { w.busy(locker) })
	}
	others.Wait()
	w.release(r)
}

func isShared(w *stage) {
	a, b := w.process(), w.process()
	first, second, third := w.lock(w.locker(a)), w.lock(w.locker(a)), w.lock(w.locker(b))
	if first.Owner() == second.Owner() {
		w.Error("two holds of one owner")
	}
	for _, l := range []*holdfast.Lease{second, first, third} {
		w.lasts(l)
		w.busy(w.rival(b))
		w.release(l)
	}
	w.free(w.rival(b))
}

// ledger is what a lock protects: a sum that is read and written in two steps. Two writers that are
// inside at the same time lose a step.
type ledger struct {
	sum, inside, readers atomic.Int64
}

func (b *ledger) write(t testing.TB) {
	if n := b.inside.Add(1); n != 1 {
		redistest.Inexcusable(t, "%d are inside", n)
	}
	if n := b.readers.Load(); n != 0 {
		redistest.Inexcusable(t, "%d readers are inside with a writer", n)
	}
	sum := b.sum.Load()
	time.Sleep(500 * time.Microsecond)
	b.sum.Store(sum + 1)
	b.inside.Add(-1)
}

func (b *ledger) read(t testing.TB) {
	b.readers.Add(1)
	if n := b.inside.Load(); n != 0 {
		redistest.Inexcusable(t, "%d writers are inside with a reader", n)
	}
	time.Sleep(500 * time.Microsecond)
	if n := b.inside.Load(); n != 0 {
		redistest.Inexcusable(t, "%d writers came in to a reader", n)
	}
	b.readers.Add(-1)
}

func counterOutside(w *stage) {
	w.contend(func(l holdfast.Locker) (*holdfast.Lease, error) { return l.Lock(w.patient()) })
}

func counterOutsideByTries(w *stage) {
	w.contend(func(l holdfast.Locker) (*holdfast.Lease, error) {
		for ctx := w.patient(); ; {
			lease, err := l.TryLock(ctx)
			if err == nil {
				return lease, nil
			}
			w.matches("TryLock", err, holdfast.ErrBusy)
			if w.Failed() {
				return nil, err
			}
			select {
			case <-time.After(2 * time.Millisecond):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	})
}

// contend lets two goroutines of each of two processes take turns.
func (w *stage) contend(get func(holdfast.Locker) (*holdfast.Lease, error)) {
	const rounds = 5
	var (
		book    ledger
		workers sync.WaitGroup
	)
	hold := func(l holdfast.Locker, work func(testing.TB)) {
		lease, err := get(l)
		if err != nil {
			w.Errorf("not granted: %v", err)
			return
		}
		work(w)
		w.release(lease)
	}
	for range 2 {
		c := w.process()
		for range 2 {
			locker, rival := w.locker(c), w.rival(c)
			workers.Go(func() {
				for range rounds {
					hold(rival, book.write)
					if w.s.Shared {
						hold(locker, book.read)
					}
				}
			})
		}
	}
	workers.Wait()
	if got, want := book.sum.Load(), int64(4*rounds); got != want && !w.Failed() {
		w.Inexcusable("%d of %d steps count: two were inside", got, want)
	}
}

// orders are the orders in which three leases can be released.
var orders = [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}

func reEntry(w *stage) {
	a, b := w.process(), w.process()
	for _, order := range orders {
		outer := w.lock(w.locker(a))
		leases := []*holdfast.Lease{outer}
		for i := range 2 {
			enter := w.locker(a).Lock
			if i == 1 {
				enter = w.locker(a).TryLock
			}
			inner, err := enter(leases[i].Context(w.patient()))
			if err != nil {
				w.Fatalf("re-entry: %v", err)
			}
			if inner == leases[i] || inner.Owner() != outer.Owner() {
				w.Error("re-entry is to give a lease of its own on the same hold")
			}
			if w.s.Fenced && inner.Token() != outer.Token() {
				w.Errorf("token %d inside %d: leases of one hold share it", inner.Token(), outer.Token())
			}
			leases = append(leases, inner)
		}
		for i, which := range order {
			w.busy(w.rival(b))
			w.release(leases[which])
			w.matches("Err", leases[which].Err(), holdfast.ErrReleased)
			for _, left := range order[i+1:] {
				w.lasts(leases[left])
			}
		}
		w.free(w.rival(b))
	}
	// The context of a lease that has ended does not re-enter.
	locker := w.locker(a)
	l := w.lock(locker)
	ctx := l.Context(w.patient())
	w.release(l)
	for what, enter := range map[string]func(context.Context) (*holdfast.Lease, error){"Lock": locker.Lock, "TryLock": locker.TryLock} {
		lease, err := enter(ctx)
		w.matches(what+" with the context of a lease that was released", err, holdfast.ErrReleased)
		if lease != nil {
			w.Error("the context of a lease that was released re-enters")
		}
	}
}

func noReEntry(w *stage) {
	c := w.process()
	l := w.lock(w.locker(c))
	if _, err := w.locker(c).TryLock(l.Context(w.patient())); err == nil {
		w.Error("granted twice")
	} else {
		w.matches("TryLock with the lease's context", err, holdfast.ErrBusy)
	}
	w.release(l)
}

func tokensGrow(w *stage) {
	processes := []*holdfast.Client{w.process(), w.process(), w.process()}
	last := int64(0)
	for i := range 9 {
		l := w.lock(w.locker(processes[i%len(processes)]))
		if l.Token() <= last {
			w.Inexcusable("hold %d has token %d, not more than %d", i, l.Token(), last)
		}
		last = l.Token()
		w.release(l)
	}
}

func brokenArguments(w *stage) {
	c := w.process()
	for what, l := range map[string]holdfast.Locker{
		"no name":        w.s.Locker(c, ""),
		"a lease of 0":   w.locker(c, holdfast.Renewed(0)),
		"a fixed one":    w.locker(c, holdfast.Fixed(-time.Second)),
		"a short one":    w.locker(c, holdfast.Fixed(99*time.Millisecond)),
		"a hold below 0": w.locker(c, holdfast.MaxHold(-1)),
		"no client":      w.s.Locker(holdfast.New(nil), w.name),
	} {
		lease, err := l.Lock(w.patient())
		w.matches(what+": Lock", err, holdfast.ErrBadArgument)
		again, err := l.TryLock(w.patient())
		w.matches(what+": TryLock", err, holdfast.ErrBadArgument)
		if lease != nil || again != nil {
			w.Errorf("%s: a lease beside the error", what)
		}
		// The work may be nil if it is never called.
		w.matches(what+": Do", holdfast.Do(w.patient(), l, nil), holdfast.ErrBadArgument)
	}
	w.free(w.locker(c))
}
