// These cases are about holders: exclusion, re-entry, tokens.

package lockertest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

// excludes has a lock and its rival exclude each other, from process to process and within one.
func excludes(w *stage) {
	a, b := w.process(), w.process()
	for _, of := range [][2]holdfast.Locker{
		{w.locker(a), w.rival(b)}, {w.rival(b), w.locker(a)}, {w.locker(a), w.rival(a)}, {w.rival(a), w.locker(a)},
	} {
		l := w.lock(of[0])
		var others sync.WaitGroup
		for range 4 {
			others.Go(func() { w.busy(of[1]) })
		}
		others.Wait()
		w.lasts(l)
		w.release(l)
	}
	w.free(w.locker(a))
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
	sum, inside, readers, token atomic.Int64
}

// write is one step of a writer with that token, which must be greater than all before, if the lock has tokens.
func (b *ledger) write(w *stage, token int64) {
	if n, readers := b.inside.Add(1), b.readers.Load(); n != 1 || readers != 0 {
		w.Errorf("%d writers and %d readers are inside", n, readers)
	}
	if last := b.token.Swap(token); (w.s.Fenced || token != 0) && token <= last {
		w.Errorf("token %d after %d", token, last)
	}
	sum := b.sum.Load()
	time.Sleep(500 * time.Microsecond)
	b.sum.Store(sum + 1)
	b.inside.Add(-1)
}

func (b *ledger) read(w *stage) {
	b.readers.Add(1)
	for range 2 {
		if n := b.inside.Load(); n != 0 {
			w.Errorf("%d writers are inside with a reader", n)
		}
		time.Sleep(500 * time.Microsecond)
	}
	b.readers.Add(-1)
}

// counterOutside lets two goroutines of each of two processes take turns, by Lock and TryLock in turn.
func counterOutside(w *stage) {
	const rounds = 5
	var (
		book    ledger
		workers sync.WaitGroup
	)
	for range 2 {
		c := w.process()
		writers, readers := w.rival(c), w.locker(c)
		takes := []func(holdfast.Locker) *holdfast.Lease{w.lock, w.tryUntil}
		for range 2 {
			workers.Go(func() {
				for i := range rounds {
					take := takes[i%2]
					l := take(writers)
					book.write(w, l.Token())
					w.release(l)
					if w.s.Shared {
						l = take(readers)
						book.read(w)
						w.release(l)
					}
				}
			})
		}
	}
	workers.Wait()
	if got, want := book.sum.Load(), int64(4*rounds); got != want {
		w.Errorf("%d of %d steps count: two were inside", got, want)
	}
}

// tryUntil tries until it is granted the lock, or ends the case.
func (w *stage) tryUntil(l holdfast.Locker) *holdfast.Lease {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(2 * time.Millisecond) {
		lease, err := l.TryLock(w.patient())
		if err == nil {
			return lease
		}
		w.matches("TryLock", err, holdfast.ErrBusy)
	}
	w.Fatal("no TryLock is granted")
	return nil
}

// orders are the orders in which three leases can be released.
var orders = [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}

func reEntry(w *stage) {
	a, b := w.process(), w.process()
	for _, order := range orders {
		outer := w.lock(w.locker(a))
		leases := []*holdfast.Lease{outer}
		for i, enter := range []func(context.Context) (*holdfast.Lease, error){w.locker(a).Lock, w.locker(a).TryLock} {
			inner, err := enter(leases[i].Context(w.patient()))
			if err != nil {
				w.Fatalf("re-entry: %v", err)
			}
			if inner == leases[i] || inner.Owner() != outer.Owner() || inner.Token() != outer.Token() {
				w.Errorf("re-entry gives a lease of its own on the same hold: %v, token %d in %d", inner.Owner(), inner.Token(), outer.Token())
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
		for _, enter := range []func(context.Context) (*holdfast.Lease, error){w.locker(a).Lock, w.locker(a).TryLock} {
			lease, err := enter(outer.Context(w.patient()))
			if w.matches("re-entry after the release", err, holdfast.ErrReleased); lease != nil {
				w.Error("the context of a lease that was released re-enters")
			}
		}
	}
}

func noReEntry(w *stage) {
	c := w.process()
	l := w.lock(w.locker(c))
	_, err := w.locker(c).TryLock(l.Context(w.patient()))
	w.matches("TryLock with the lease's context", err, holdfast.ErrBusy)
	w.release(l)
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

// syncLocker shows that a sync.Locker holds the lock, and panics at an Unlock of what is not locked.
func syncLocker(w *stage) {
	locker := holdfast.SyncLocker(w.patient(), w.locker(w.process()))
	locker.Lock()
	w.busy(w.rival(w.process()))
	locker.Unlock()
	defer func() {
		if recover() == nil {
			w.Error("Unlock of what is not locked does not panic")
		}
	}()
	locker.Unlock()
}
