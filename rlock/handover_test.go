// This file is about how the mutex passes from process to process: each process has one place in
// the queue, and a release hands the lock to the next process.

package rlock_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

const (
	queueKey = "holdfast_lock_queue:{myLock}"
	openKey  = "holdfast_lock_open:{myLock}"
)

// One waiter of each process stands in the queue, and the lock goes round the processes. The release
// takes the next place of its process, so that each grant costs one request.
func TestHandOver_TheProcessesTakeTurns(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		const processes, waiters, rounds = 3, 4, 2
		held := w.Lock(t.Context(), w.Process().MyLock)
		var all []*world.Process
		var tokens []int64
		turns := make(chan int)
		for i := range processes {
			p := w.Process()
			all = append(all, p)
			for range waiters {
				go func() {
					for range rounds {
						l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Cohort(0, 0)))
						tokens = append(tokens, l.Token())
						turns <- i
						time.Sleep(time.Millisecond) // the next waiter of the process takes its place
						w.Release(l)
					}
				}()
			}
			synctest.Wait()
		}
		w.At(100 * time.Millisecond)
		wantQueued(w, processes)
		w.Release(held)
		sent := func() (n int) {
			for _, p := range all {
				n += p.Runs("")
			}
			return n
		}
		var order []int
		before := 0
		for n := range processes * waiters * rounds {
			order = append(order, <-turns)
			time.Sleep(3 * time.Millisecond)
			switch n {
			case 5:
				before = sent()
			case 15:
				world.Equal(t, sent()-before, 10, "%d requests for 10 grants")
			}
		}
		for i := range order {
			if i >= processes && order[i] != order[i-processes] {
				t.Fatalf("granted to %v, want the processes in turn", order)
			}
		}
		if !slices.IsSorted(tokens) {
			t.Errorf("tokens %v", tokens)
		}
		w.At(w.Now() + time.Second)
		w.WantFree()
		wantQueued(w, 0)
	})
}

// A release may hand the lock to a process that died in the queue. The lock goes on when the place
// of that process is over. If the holder died too, the lock goes on as soon as its lease is over.
func TestHandOver_ToTheDead(t *testing.T) {
	for _, tc := range []struct {
		what        string
		holderDies  bool
		least, most time.Duration // counted from the release, or from the end of the lease
	}{
		{"the first in the queue", false, 1250 * time.Millisecond, 2500 * time.Millisecond},
		{"the holder too", true, 0, 100 * time.Millisecond},
	} {
		play(t, tc.what, func(t *testing.T, w *world.World) {
			p, q, r := w.Process(), w.Process(), w.Process()
			held := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Renewed(3*time.Second)))
			dying, die := context.WithCancel(t.Context())
			dead := w.GoLock(dying, q.MyLock)
			synctest.Wait()
			next := w.GoLock(t.Context(), r.MyLock)
			w.At(2500 * time.Millisecond)
			q.Unplug(true)
			from := w.Now()
			if tc.holderDies {
				p.Unplug(true)
				from = w.Now() + w.PTTL(world.Name)
			} else {
				w.Release(held)
			}
			l := granted(t, next)
			world.Within(t, "the next", w.Now()-from, tc.least, tc.most)
			die()
			world.WantErr(t, second(dead.Result()), context.Canceled)
			w.Release(l)
			q.Unplug(false)
			p.Unplug(false)
			w.At(15 * time.Second)
		})
	}
}

// Each hand-over sends a message to listeners outside the queue. Redisson reads this message as the
// message of a release, and no Client asks for the lock because of it.
func TestHandOver_ThoseOutsideTheQueueAreToldOfIt(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q, r := w.Process(), w.Process(), w.Process()
		messages := w.Messages(world.Channel)
		held := w.Lock(t.Context(), p.FairMutex(world.Name)) // a FairMutex's releases are never open
		next := w.GoLock(t.Context(), q.MyLock)
		synctest.Wait()
		last := w.GoLock(t.Context(), r.MyLock)
		w.At(100 * time.Millisecond)
		asked := r.Runs("")
		w.Release(held)
		synctest.Wait()
		if left := w.PTTL(world.Name); left <= 0 || left > 2500*time.Millisecond {
			t.Errorf("a request then is told that the lock is held for %v", left)
		}
		told := messages()
		if len(told) != 1 || !strings.HasPrefix(told[0], "100ms ") {
			t.Fatalf("told %q, want one message at the hand-over", told)
		}
		text := strings.TrimPrefix(told[0], "100ms ")
		if n, err := strconv.Atoi(text); err != nil || n != 0 {
			t.Errorf("told %q, which Redisson does not read as 0", text)
		}
		world.Equal(t, r.Runs("")-asked, 0, "a process asked %d times though it was another's turn")
		w.Release(granted(t, next))
		w.Release(granted(t, last))
		if got := w.Now(); got > 110*time.Millisecond {
			t.Errorf("all have had it at %v", got)
		}
	})
}

// A process that releases the lock in the open, and asks for it again at once, does not get it back
// before the clients outside the queue have had their moment.
func TestHandOver_AClientThatReleasesInTheOpenWaitsTheMomentOut(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		const grants = 60
		p := w.Process()
		defer w.Messages(world.Channel)()
		open := 0
		for range grants {
			l := w.Lock(t.Context(), p.MyLock)
			time.Sleep(time.Millisecond)
			w.Release(l)
			left := w.PTTL(openKey)
			released := w.Now()
			next := w.Lock(t.Context(), p.MyLock)
			if waited := w.Now() - released; left > 0 {
				open++
				if waited < left {
					t.Fatalf("granted after %v, when the lock was left open for %v", waited, left)
				}
			}
			w.Release(next)
		}
		if open < grants/3/2 || open > grants/3*2 {
			t.Errorf("%d of %d releases were open", open, grants)
		}
	})
}
