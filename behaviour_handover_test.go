// This file is about how the mutex passes from process to process: each process has one place in
// the queue, and a release hands the lock to the next process.

package holdfast_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

const (
	queueKey = "holdfast_lock_queue:{myLock}"
	openKey  = "holdfast_lock_open:{myLock}"
	grantKey = "holdfast_lock_grant:{myLock}"
)

// queued returns how many processes have a place.
func (w *world) queued() int {
	w.t.Helper()
	n, err := w.rdb.ZCard(w.t.Context(), queueKey).Result()
	if err != nil {
		w.t.Fatal(err)
	}
	return int(n)
}

// One waiter of each process stands in the queue, and the lock goes round the processes.
func TestHandOver_TheProcessesTakeTurns(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		const processes, waiters = 3, 4
		first := w.process()
		held := w.lock(t.Context(), first.mutex)
		turns := make(chan int)
		for i := range processes {
			p := w.process()
			for range waiters {
				go func() {
					l := w.lock(t.Context(), p.Mutex(name, holdfast.Cohort(0, 0)))
					turns <- i
					time.Sleep(time.Millisecond) // the next waiter of the process takes its place
					w.release(l)
				}()
			}
			synctest.Wait()
		}
		w.at(100 * time.Millisecond)
		if n := w.queued(); n != processes {
			t.Errorf("%d in the queue, want one for each of %d processes", n, processes)
		}
		w.release(held)
		var order []int
		for range processes * waiters {
			order = append(order, <-turns)
			time.Sleep(3 * time.Millisecond)
		}
		for i := range order {
			if i >= processes && order[i] != order[i-processes] {
				t.Errorf("granted to %v, want the processes in turn", order)
				break
			}
		}
	})
}

// A release wakes the process that has its turn, and no other process.
func TestHandOver_WakesOneProcess(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q, r := w.process(), w.process(), w.process()
		held := w.lock(t.Context(), p.mutex)
		next := w.goLock(t.Context(), q.mutex)
		synctest.Wait()
		last := w.goLock(t.Context(), r.mutex)
		w.at(100 * time.Millisecond)
		asked, messages := r.runs(""), w.messages(channel, grantKey) // listens like a Client
		w.release(held)
		l, err := next.result()
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := r.runs("") - asked; n != 0 {
			t.Errorf("a process asked %d times though it was another's turn", n)
		}
		if got := messages(); len(got) != 0 {
			t.Errorf("told all: %q", got)
		}
		w.release(l)
		l, err = last.result()
		if err != nil {
			t.Fatal(err)
		}
		w.release(l)
		within(t, "both", w.now(), 100*time.Millisecond, 100*time.Millisecond)
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
		t.Run(tc.what, func(t *testing.T) {
			play(t, func(t *testing.T, w *world) {
				p, q, r := w.process(), w.process(), w.process()
				held := w.lock(t.Context(), p.Mutex(name, holdfast.Renewed(3*time.Second)))
				dying, die := context.WithCancel(t.Context())
				dead := w.goLock(dying, q.mutex)
				synctest.Wait()
				next := w.goLock(t.Context(), r.mutex)
				w.at(2500 * time.Millisecond)
				q.unplug(true)
				from := w.now()
				if tc.holderDies {
					p.unplug(true)
					from = w.now() + w.pttl(name)
				} else {
					w.release(held)
				}
				l, err := next.result()
				if err != nil {
					t.Fatal(err)
				}
				within(t, "the next", w.now()-from, tc.least, tc.most)
				die()
				wantErr(t, second(dead.result()), context.Canceled)
				w.release(l)
				q.unplug(false)
				p.unplug(false)
				w.at(15 * time.Second)
			})
		})
	}
}

func second(_ *holdfast.Lease, err error) error { return err }

// A waiter that gives up leaves the queue. If it was handed the lock at that instant, the lock is
// handed on to the next waiter.
func TestHandOver_ToOneThatGivesUp(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q, r := w.process(), w.process(), w.process()
		held := w.lock(t.Context(), p.mutex)
		leaving, leave := context.WithCancel(t.Context())
		gone := w.goLock(leaving, q.mutex)
		synctest.Wait()
		next := w.goLock(t.Context(), r.mutex)
		w.at(100 * time.Millisecond)
		q.each(nil)
		leave()
		w.release(held) // hands the lock to the leaving waiter, or finds that waiter gone
		wantErr(t, second(gone.result()), context.Canceled, holdfast.ErrBusy)
		l, err := next.result()
		if err != nil {
			t.Fatal(err)
		}
		within(t, "the next", w.now(), 100*time.Millisecond, 150*time.Millisecond)
		if n := w.queued(); n != 0 {
			t.Errorf("%d left in the queue", n)
		}
		w.release(l)
	})
}

// When the message of a hand-over is lost, the waiter finds the hand-over at its next poll.
func TestHandOver_MessageLost(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q := w.process(), w.process()
		held := w.lock(t.Context(), p.mutex)
		next := w.goLock(t.Context(), q.mutex)
		w.at(2500 * time.Millisecond)
		if err := w.rdb.HSet(t.Context(), name, fmt.Sprint(held.Owner()), 1).Err(); err != nil {
			t.Fatal(err)
		}
		// This does what a release does, except that it sends no message.
		waiter := w.rdb.ZRange(t.Context(), queueKey, 0, 0).Val()
		if len(waiter) != 1 {
			t.Fatalf("in the queue: %q", waiter)
		}
		w.rdb.HDel(t.Context(), name, fmt.Sprint(held.Owner()))
		w.rdb.HSet(t.Context(), name, waiter[0], 0)
		w.rdb.PExpire(t.Context(), name, 2*time.Second)
		l, err := next.result()
		if err != nil {
			t.Fatal(err)
		}
		within(t, "granted", w.now(), 2500*time.Millisecond, 3750*time.Millisecond)
		w.wantHolder(l.Owner(), 1)
		w.release(l)
		wantErr(t, held.Release(t.Context()), holdfast.ErrLost)
	})
}

// One release in 3 leaves the lock open for a moment to clients outside the queue, such as Java
// clients, if there are any.
func TestHandOver_SomeReleasesAreOpen(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		const grants = 150
		p, q := w.process(), w.process()
		told := []func() []string{w.messages(w.grantsTo(p)), w.messages(w.grantsTo(q))}
		defer w.messages(channel)()
		turns := make(chan *process)
		for _, each := range []*process{p, q} {
			go func() {
				for range grants / 2 {
					l := w.lock(t.Context(), each.mutex)
					turns <- each
					time.Sleep(time.Millisecond)
					w.release(l)
				}
			}()
		}
		var order []*process
		for range grants {
			order = append(order, <-turns)
		}
		synctest.Wait()
		w.at(w.now() + 10*time.Millisecond)
		open := 0
		for _, messages := range told {
			for _, message := range messages() {
				if strings.HasSuffix(message, " 0") {
					open++
				}
			}
		}
		if open < grants/3/2 || open > grants/3*2 {
			t.Errorf("%d of %d releases were open", open, grants)
		}
		within(t, "all", w.now(), grants*time.Millisecond, 3*grants*time.Millisecond)
		if half := order[:grants/2]; !slices.Contains(half, p) || !slices.Contains(half, q) {
			t.Error("one process had all the turns of the first half")
		}
	})
}

// grantsTo returns the channel on which p hears of its grants.
func (w *world) grantsTo(p *process) string {
	w.t.Helper()
	l := w.lock(w.t.Context(), p.mutex)
	w.release(l)
	return grantKey + ":" + l.Owner().String()[:36]
}

// Each hand-over sends a message to listeners outside the queue. Redisson reads this message as the
// message of a release, and no Client asks for the lock because of it.
func TestHandOver_ThoseOutsideTheQueueAreToldOfIt(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		p, q, r := w.process(), w.process(), w.process()
		messages := w.messages(channel)
		held := w.lock(t.Context(), p.FairMutex(name)) // a FairMutex's releases are never open
		next := w.goLock(t.Context(), q.mutex)
		synctest.Wait()
		last := w.goLock(t.Context(), r.mutex)
		w.at(100 * time.Millisecond)
		asked := r.runs("")
		w.release(held)
		synctest.Wait()
		if left := w.pttl(name); left <= 0 || left > 2500*time.Millisecond {
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
		if n := r.runs("") - asked; n != 0 {
			t.Errorf("a process asked %d times though it was another's turn", n)
		}
		for _, waiting := range []*attempt{next, last} {
			l, err := waiting.result()
			if err != nil {
				t.Fatal(err)
			}
			w.release(l)
		}
		if got := w.now(); got > 110*time.Millisecond {
			t.Errorf("all have had it at %v", got)
		}
	})
}

// A process that releases the lock in the open, and asks for it again at once, does not get it back
// before the clients outside the queue have had their moment.
func TestHandOver_AClientThatReleasesInTheOpenWaitsTheMomentOut(t *testing.T) {
	play(t, func(t *testing.T, w *world) {
		const grants = 60
		p := w.process()
		defer w.messages(channel)()
		open := 0
		for range grants {
			l := w.lock(t.Context(), p.mutex)
			time.Sleep(time.Millisecond)
			w.release(l)
			left := w.pttl(openKey)
			released := w.now()
			next := w.lock(t.Context(), p.mutex)
			if waited := w.now() - released; left > 0 {
				open++
				if waited < left {
					t.Fatalf("granted after %v, when the lock was left open for %v", waited, left)
				}
			}
			w.release(next)
		}
		if open < grants/3/2 || open > grants/3*2 {
			t.Errorf("%d of %d releases were open", open, grants)
		}
	})
}
