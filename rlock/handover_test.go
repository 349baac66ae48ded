// This file is about how the mutex passes from process to process: each process has one place in
// the queue, and a release hands the lock to the next process.

package rlock_test

import (
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
		const processes, waiters = 3, 6
		held := w.Lock(t.Context(), w.Process().MyLock)
		var all []*world.Process
		var turns [waiters][processes]*world.Attempt
		for i := range processes {
			all = append(all, w.Process())
			for n := range waiters {
				turns[n][i] = w.GoLock(t.Context(), all[i].Mutex(world.Name, holdfast.Cohort(0, 0)))
				synctest.Wait()
			}
		}
		w.At(100 * time.Millisecond)
		wantQueued(w, processes)
		sent := func() (n int) {
			for _, p := range all {
				n += p.Runs("")
			}
			return n
		}
		before := 0
		for n, turn := range turns {
			for i, next := range turn {
				switch n*processes + i {
				case 5: // now each process knows that others wait
					before = sent()
				case 15:
					world.Equal(t, sent()-before, 10, "%d requests for 10 grants")
				}
				w.Release(held)
				l := granted(t, next)
				if l.Token() <= held.Token() {
					t.Errorf("token %d after %d", l.Token(), held.Token())
				}
				time.Sleep(time.Millisecond) // the next waiter of the process takes its place
				held = l
			}
		}
		w.Release(held)
		w.WantFree()
		wantQueued(w, 0)
	})
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
