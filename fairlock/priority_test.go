// These tests show who passes whom by a priority, and for how long.

package fairlock_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fairlock"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// step is how much earlier a waiter seems to have come for each step of its priority, as users know it.
const step = 10 * time.Second

// one is a waiter that comes at a time with a priority.
type one struct {
	at       time.Duration
	priority int
}

// seems returns when it seems to have come.
func (o one) seems() time.Duration { return o.at - time.Duration(o.priority)*step }

// Waiters of several processes and of one are granted the lock in the order in which they seem to have come, and
// those of a priority in the order in which they came.
func TestAPriorityPassesThoseWhoCameLittleBefore(t *testing.T) {
	all := []one{
		{1 * time.Second, 0}, {2 * time.Second, 1}, {3 * time.Second, 0}, {4 * time.Second, 3}, {5 * time.Second, 3},
		{11500 * time.Millisecond, 1}, {12500 * time.Millisecond, 1}, {33 * time.Second, 3}, {40 * time.Second, 2}, {41 * time.Second, 100},
	}
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("of one process: %v", shared), func(t *testing.T) {
			play(t, func(t *testing.T, w *fairWorld) {
				first, p := w.process(), w.process()
				l := w.Lock(t.Context(), first)
				waits := make(map[one]*world.Attempt)
				for i, o := range all {
					w.At(o.at)
					if !shared && i%3 > 0 {
						p = w.process()
					}
					waits[o] = w.goLock(t.Context(), p.FairMutex(name, fairlock.Priority(o.priority)))
				}
				w.wantQueue(len(all))
				want := slices.Clone(all)
				slices.SortFunc(want, func(a, b one) int { return cmp.Compare(a.seems(), b.seems()) })
				for _, o := range want {
					at := w.Now()
					w.Release(l)
					synctest.Wait()
					if waits[o].Pending() {
						t.Errorf("at %v, of %v it was not the turn of %v", w.Now(), want, o)
					}
					l = w.granted(waits[o])
					world.Within(t, fmt.Sprint(o), w.Now(), at, at)
				}
				w.Release(l)
				w.wantQueue(0)
			})
		})
	}
}

// Waiters of the highest priority keep coming. One without a priority is passed by those that come in the time that
// the documents state, and by no other.
func TestNobodyIsPassedForLongerThanTheBound(t *testing.T) {
	const highest, every = fairlock.MaxPriority, 5 * time.Second
	play(t, func(t *testing.T, w *fairWorld) {
		p, q := w.process(), w.process()
		high := q.FairMutex(name, fairlock.Priority(highest))
		l := w.Lock(t.Context(), p)
		patient := w.goLock(t.Context(), p)
		var pass, come []*world.Attempt // those that came in time to pass it, and those that came too late
		for at := every; at < highest*step+time.Minute; at += every {
			w.At(at)
			if a := w.goLock(t.Context(), high); at < highest*step {
				pass = append(pass, a)
			} else {
				come = append(come, a)
			}
		}
		for _, next := range slices.Concat(pass, []*world.Attempt{patient}, come) {
			at := w.Now()
			w.Release(l)
			l = w.granted(next)
			world.Within(t, "its turn", w.Now(), at, at)
		}
		w.Release(l)
	})
}

// Those without a priority send what they sent before there were any, and so does a Mutex, which has none.
func TestWithoutAPriorityNothingElseIsSent(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a := w.process()
		l := w.Lock(t.Context(), a)
		var waits []*world.Attempt
		for _, tc := range []struct {
			what string
			m    lease.Locker
			want int
		}{
			{"one", a.FairMutex(name, fairlock.Priority(1)), 1}, {"none", a.FairMutex(name, fairlock.Priority(0)), 0},
			{"a Mutex", a.Client.Mutex(name, fairlock.Priority(9)), 0},
		} {
			a.Forget()
			waits = append(waits, w.goLock(t.Context(), tc.m))
			if got := a.Runs("fair enter"); min(got, 1) != tc.want {
				t.Errorf("%s: %d runs of the script with priorities", tc.what, got)
			}
		}
		for _, next := range waits {
			w.Release(l)
			l = w.granted(next)
		}
		w.Release(l)
	})
}

func TestBadPriorities(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		for _, p := range []int{-1, fairlock.MaxPriority + 1} {
			m := w.process().FairMutex(name, fairlock.Priority(p))
			_, lock := m.Lock(t.Context())
			_, try := m.TryLock(t.Context())
			world.WantErr(t, lock, holdfast.ErrBadArgument)
			world.WantErr(t, try, holdfast.ErrBadArgument)
		}
	})
}
