// These tests show who passes whom by a priority, and for how long.

package fairlock_test

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/fairlock"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
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
	const highest = fairlock.MaxPriority
	play(t, func(t *testing.T, w *fairWorld) {
		p, q := w.process(), w.process()
		high := q.FairMutex(name, fairlock.Priority(highest))
		l := w.Lock(t.Context(), p)
		patient := w.goLock(t.Context(), p)
		var mu sync.Mutex
		var passed []time.Duration // when those came that were served first
		over := false
		var all sync.WaitGroup
		for at := 5 * time.Second; at < highest*step+time.Minute; at += 5 * time.Second {
			w.At(at)
			all.Go(func() {
				l, err := high.Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if !over {
					passed = append(passed, at)
				}
				mu.Unlock()
				w.Release(l)
			})
		}
		synctest.Wait()
		w.Release(l)
		l = w.granted(patient)
		mu.Lock()
		over = true
		mu.Unlock()
		if last := slices.Max(passed); last != highest*step-5*time.Second || len(passed) != int(highest*step/(5*time.Second))-1 {
			t.Errorf("%d have passed it, the last of which came at %v, want all that came within %v", len(passed), last, highest*step)
		}
		w.Release(l)
		all.Wait()
	})
}

// A request that takes a place by a priority is lost, or its reply is, or it comes twice. The waiter has one
// place, and that before those without a priority.
func TestAPriorityOutlastsLostReplies(t *testing.T) {
	for what, fault := range map[string]redistest.Fault{
		"request": redistest.DropBefore, "reply": redistest.CloseAfterExec, "half a reply": redistest.HalfReply, "twice": redistest.Duplicate,
	} {
		t.Run(what, func(t *testing.T) {
			play(t, func(t *testing.T, w *fairWorld) {
				a, b := w.process(), w.process()
				l := w.Lock(t.Context(), a)
				w.At(5 * time.Second)
				last := w.goLock(t.Context(), a)
				b.On("fair enter", 1, fault)
				next := w.goLock(t.Context(), b.FairMutex(name, fairlock.Priority(1)))
				w.At(8 * time.Second)
				w.wantQueue(2)
				for _, each := range []*world.Attempt{next, last} {
					w.Release(l)
					l = w.granted(each)
				}
				w.Release(l)
				w.At(12 * time.Second)
				w.wantQueue(0)
			})
		})
	}
}

// A process is cut off for so long that its places lapse. It takes them again where they were.
func TestAPlaceByAPriorityIsTakenAgain(t *testing.T) {
	play(t, func(t *testing.T, w *fairWorld) {
		a, b := w.process(), w.process()
		l := w.Lock(t.Context(), a)
		w.At(3 * time.Second)
		plain := []*world.Attempt{w.goLock(t.Context(), a), w.goLock(t.Context(), b)}
		w.At(5 * time.Second)
		high := w.goLock(t.Context(), b.FairMutex(name, fairlock.Priority(2))) // behind the head of its line
		before := w.waiters()
		b.Unplug(true)
		w.At(12 * time.Second)
		b.Unplug(false)
		w.At(17 * time.Second)
		if after := w.waiters(); !slices.Equal(before, after) {
			t.Errorf("the order was\n%q and is\n%q", before, after)
		}
		for _, next := range append([]*world.Attempt{high}, plain...) {
			w.Release(l)
			l = w.granted(next)
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
