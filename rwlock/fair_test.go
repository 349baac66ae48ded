// These tests are about who goes first: the order holds across processes, no waiter starves, and a
// waiter that is gone keeps no other waiter out.

package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/rwlock"
)

// tries fails the test unless a try gives ErrBusy.
func (w *rwWorld) tries(f func(context.Context) (*lease.Lease, error)) {
	w.Helper()
	l, err := f(w.Context())
	w.refused(l, err, holdfast.ErrBusy)
}

func TestAWaitingWriterHoldsBackNewReaders(t *testing.T) {
	play(t, func(w *rwWorld) {
		p1, p2, p3 := w.process(), w.process(), w.process()
		r := w.got(p1.RLock(w.Context()))
		w.At(time.Millisecond)
		writer := w.begin(p2.Lock)
		w.wantMarks(0, 1)
		w.At(2 * time.Millisecond)
		w.tries(p1.TryRLock)
		w.tries(p2.TryRLock) // the writer's own process must wait too
		w.tries(p3.TryRLock)
		w.wantMarks(0, 1)
		late := w.begin(p3.RLock)
		w.wantMarks(1, 1)
		again := w.got(p1.RLock(r.Context(w.Context()))) // a re-entry is no newcomer
		w.At(10 * time.Second)
		w.wantPending(true, writer, late) // both waiters refresh their marks
		w.wantMarks(1, 1)
		w.Release(again, r)
		l := w.result(writer)
		world.Equal(t, writer.At, 10*time.Second, "the writer was in at %v")
		w.wantPending(true, late)
		w.wantMarks(1, 0)
		w.Release(l)
		w.Release(w.result(late))
		w.wantMarks(0, 0)
	})
}

// The waiters come in the order of the letters, each in a process of its own or all in one.
func TestTheOrderAcrossProcesses(t *testing.T) {
	for _, tc := range []struct {
		come string   // the waiters that come while a writer is in
		one  bool     // they are in one process
		in   []string // who is in after each release of all that were in
	}{
		{"rw", false, []string{"r0", "w1"}},
		{"wr", false, []string{"w0", "r1"}},
		{"ww", false, []string{"w0", "w1"}},
		{"wrw", false, []string{"w0", "r1", "w2"}},
		{"rrwr", false, []string{"r0 r1", "w2", "r3"}},
		// A reader lets one earlier writer go first, but not a second one.
		{"wwr", false, []string{"w0", "r2", "w1"}},
		{"wwrwrr", false, []string{"w0", "r2 r4 r5", "w1", "w3"}},
		{"wrrrw", true, []string{"w0", "r1 r2 r3", "w4"}},
	} {
		t.Run(tc.come, func(t *testing.T) {
			play(t, func(w *rwWorld) {
				m := w.process()
				first := w.got(m.Lock(w.Context()))
				var calls []*world.Attempt
				for _, side := range tc.come {
					w.At(w.Now() + 10*time.Millisecond)
					if !tc.one {
						m = w.process()
					}
					lock := m.Lock
					if side == 'r' {
						lock = m.RLock
					}
					calls = append(calls, w.begin(lock))
				}
				w.At(w.Now() + 10*time.Millisecond)
				w.wantPending(true, calls...)
				w.Release(first)
				done := make(map[int]bool)
				for _, want := range tc.in {
					w.At(w.Now() + time.Second) // long enough even if a message came before a mark
					got, now := "", []*lease.Lease{}
					for i, c := range calls {
						if !done[i] && !c.Pending() {
							done[i] = true
							if got != "" {
								got += " "
							}
							got += tc.come[i:i+1] + string(rune('0'+i))
							now = append(now, w.result(c))
						}
					}
					if got != want {
						t.Fatalf("in: %q, want %q", got, want)
					}
					w.Release(now...)
				}
			})
		})
	}
}

func TestAWaitThatEndsLeavesNoMark(t *testing.T) {
	play(t, func(w *rwWorld) {
		p1, p2, p3 := w.process(), w.process(), w.process()
		r := w.got(p1.RLock(w.Context()))
		w.At(time.Millisecond)
		ctx, cancel := context.WithTimeout(w.Context(), 500*time.Millisecond)
		defer cancel()
		writer := w.beginWith(ctx, p2.Lock)
		w.At(2 * time.Millisecond)
		reader := w.begin(p3.RLock)
		w.wantMarks(1, 1)
		w.At(499 * time.Millisecond)
		w.wantPending(true, reader)
		<-writer.Done
		w.refused(writer.Lease, writer.Err, holdfast.ErrBusy, context.DeadlineExceeded)
		in := w.result(reader) // the reader is told at once
		world.Equal(t, reader.At, 501*time.Millisecond, "the reader was in at %v")
		w.wantMarks(0, 0)
		w.Release(r, in)
	})
}

func TestTheMarkOfADeadWaiterCountsForSecondsOnly(t *testing.T) {
	play(t, func(w *rwWorld) {
		net, dead := w.apart()
		p1, p3 := w.process(), w.process()
		r := w.got(p1.RLock(w.Context()))
		w.At(time.Millisecond)
		ctx, cancel := context.WithCancel(w.Context())
		writer := w.beginWith(ctx, dead.Lock)
		w.At(1500 * time.Millisecond)
		w.wantMarks(0, 1)
		net.Refuse(true)
		net.Cut()
		reader := w.begin(p3.RLock)
		w.wantPending(true, reader)
		in := w.result(reader)
		if waited := reader.At - 1500*time.Millisecond; waited > 3750*time.Millisecond+time.Millisecond {
			t.Errorf("the reader waited %v for a dead writer", waited)
		}
		w.Release(r, in)
		cancel()
		<-writer.Done
		net.Refuse(false)
		w.At(10 * time.Second)
		w.wantTTL(waiting, gone)
	})
}

func TestATryDoesNotOvertake(t *testing.T) {
	play(t, func(w *rwWorld) {
		m := w.process()
		mark := func(side string) {
			w.RDB.FlushAll(w.Context())
			ms := float64(time.Now().UnixMilli())
			w.RDB.ZAdd(w.Context(), side, redis.Z{Score: ms, Member: "another:1"})
			w.RDB.ZAdd(w.Context(), waiting, redis.Z{Score: ms + 1000, Member: "another:1"})
		}
		mark(readers)
		w.tries(m.TryLock)
		w.Release(w.got(m.TryRLock(w.Context())))
		mark(writers)
		w.tries(m.TryLock)
		w.tries(m.TryRLock)
		w.At(time.Second) // from now on its process is dead
		w.Release(w.got(m.TryLock(w.Context())))
		w.wantMarks(0, 0)
	})
}

// The field of a crashed reader stays in Redis while other readers live; its timeout key does not.
func TestACrashedReaderBlocksAWriterNoLongerThanItsLease(t *testing.T) {
	play(t, func(w *rwWorld) {
		net, crashed := w.apart(holdfast.Renewed(5 * time.Second))
		p2, p3 := w.process(), w.process()
		dead := w.got(crashed.RLock(w.Context()))
		w.At(time.Second)
		net.Refuse(true)
		net.Cut()
		live := w.got(p2.RLock(w.Context()))
		w.At(2 * time.Second)
		writer := w.begin(p3.Lock)
		w.At(4 * time.Second)
		w.Release(live)
		l := w.result(writer)
		if writer.At < 5*time.Second || writer.At > 5*time.Second+10*time.Millisecond {
			t.Errorf("the writer was in at %v, want 5s", writer.At)
		}
		w.wantFields("mode=write", l.Owner().String()+":write=1")
		w.Release(l)
		w.refused(nil, dead.Err(), holdfast.ErrLost)
		net.Refuse(false)

		// The other way round, the live reader stays for longer than the crashed one.
		net2, again := w.apart(holdfast.Renewed(5 * time.Second))
		w.got(again.RLock(w.Context()))
		live = w.got(p2.RLock(w.Context()))
		net2.Refuse(true)
		net2.Cut()
		w.At(60 * time.Second)
		writer = w.begin(p3.Lock)
		w.At(70 * time.Second)
		w.Release(live)
		w.Release(w.result(writer))
		world.Equal(t, writer.At, 70*time.Second, "the writer was in at %v, want 70s")
		net2.Refuse(false)
	})
}

// The server's clock was an hour ahead when the last writer was let in, and has been set right
// since. Until the clock has caught up, it is unknown who came before that writer.
func TestTheOrderAfterTheClockWasSetBack(t *testing.T) {
	ahead := func(w *rwWorld) {
		w.RDB.Set(w.Context(), tokenKey, time.Now().Add(time.Hour).UnixMicro(), 24*time.Hour)
	}
	t.Run("a writer is in", func(t *testing.T) {
		play(t, func(w *rwWorld) {
			ahead(w)
			first := w.got(w.process().Lock(w.Context()))
			writer := w.begin(w.process().Lock)
			w.At(10 * time.Millisecond)
			reader := w.begin(w.process().RLock)
			w.At(5 * time.Second)
			w.Release(first)
			w.At(6 * time.Second)
			w.wantPending(false, writer)
			w.wantPending(true, reader)
			w.Release(w.result(writer))
			w.Release(w.result(reader))
		})
	})
	t.Run("a reader is in", func(t *testing.T) {
		play(t, func(w *rwWorld) {
			ahead(w)
			first := w.got(w.process().RLock(w.Context()))
			writer := w.begin(w.process().Lock)
			w.At(5 * time.Second)
			w.tries(w.process().TryRLock) // the writer came first
			w.Release(first)
			w.Release(w.result(writer))
		})
	})
}

// A waiter whose mark is by the old clock does not fall behind newcomers whose marks are by the new clock.
func TestAMarkFromBeforeTheClockWasSetBackLosesNoPlace(t *testing.T) {
	play(t, func(w *rwWorld) {
		first := w.got(w.process().RLock(w.Context()))
		writer := w.begin(w.process().Lock)
		w.At(2 * time.Second)
		w.wantMarks(0, 1)
		for _, key := range []string{writers, waiting} {
			for _, mark := range w.RDB.ZRangeWithScores(w.Context(), key, 0, -1).Val() {
				mark.Score += float64(time.Hour.Milliseconds())
				w.RDB.ZAdd(w.Context(), key, mark)
			}
		}
		w.At(4 * time.Second) // the writer has asked again
		w.tries(w.process().TryRLock)
		w.Release(first)
		w.Release(w.result(writer))
	})
}

// "x" and "{x}" are two locks, though they share their token and their channel. If they had one set of marks, a holder of
// the first that asks for the second would wait for those that wait for the first.
func TestALockIsNotHeldUpByTheWaitersOfANameThatSharesItsToken(t *testing.T) {
	play(t, func(w *rwWorld) {
		p, q := w.process(), w.process()
		braced := func(i int) *rwlock.RWMutex { return w.Processes[i].RWMutex("{" + name + "}") }
		held := w.got(p.Lock(w.Context()))
		writer, reader := w.begin(q.Lock), w.begin(q.RLock)
		w.At(2 * time.Second)
		w.wantPending(true, writer, reader)
		for i, m := range []*rwlock.RWMutex{braced(0), braced(1)} { // the holder's, the waiter's
			w.Release(w.got(m.TryRLock(w.Context())))
			w.Release(w.got(m.TryLock(w.Context())))
			c := w.begin(m.Lock)
			w.wantPending(false, c)
			if t.Failed() {
				t.Fatalf("process %d waits for the other lock's waiters", i)
			}
			w.Release(w.result(c))
		}
		w.Release(held)
		w.Release(w.result(writer))
		w.Release(w.result(reader))
	})
}
