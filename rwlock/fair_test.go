// These tests are about who goes first: the order holds across processes, no waiter starves, and a
// waiter that is gone keeps no other waiter out.

package rwlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/rwlock"
)

// tries fails the test unless a try gives ErrBusy.
func (w *world) tries(f func(context.Context) (*lease.Lease, error)) {
	w.Helper()
	l, err := f(w.Context())
	w.refused(l, err, holdfast.ErrBusy)
}

func TestAWaitingWriterHoldsBackNewReaders(t *testing.T) {
	play(t, func(w *world) {
		p1, p2, p3 := w.process(), w.process(), w.process()
		r := w.got(p1.RLock(w.Context()))
		w.at(time.Millisecond)
		writer := w.begin(p2.Lock)
		w.wantMarks(0, 1)
		w.at(2 * time.Millisecond)
		w.tries(p1.TryRLock)
		w.tries(p2.TryRLock) // the writer's own process must wait too
		w.tries(p3.TryRLock)
		w.wantMarks(0, 1)
		late := w.begin(p3.RLock)
		w.wantMarks(1, 1)
		again := w.got(p1.RLock(r.Context(w.Context()))) // a re-entry is no newcomer
		w.at(10 * time.Second)
		w.wantPending(true, writer, late) // both waiters refresh their marks
		w.wantMarks(1, 1)
		w.release(again, r)
		l := w.result(writer)
		if writer.at != 10*time.Second {
			t.Errorf("the writer was in at %v", writer.at)
		}
		w.wantPending(true, late)
		w.wantMarks(1, 0)
		w.release(l)
		w.release(w.result(late))
		w.wantMarks(0, 0)
	})
}

// Each waiter is in a process of its own. The waiters come in the order of the letters.
func TestTheOrderAcrossProcesses(t *testing.T) {
	for _, tc := range []struct {
		come string   // the waiters that come while a writer is in
		in   []string // who is in after each release of all that were in
	}{
		{"rw", []string{"r0", "w1"}},
		{"wr", []string{"w0", "r1"}},
		{"ww", []string{"w0", "w1"}},
		{"wrw", []string{"w0", "r1", "w2"}},
		{"rrwr", []string{"r0 r1", "w2", "r3"}},
		// A reader lets one earlier writer go first, but not a second one.
		{"wwr", []string{"w0", "r2", "w1"}},
		{"wwrwrr", []string{"w0", "r2 r4 r5", "w1", "w3"}},
	} {
		t.Run(tc.come, func(t *testing.T) {
			play(t, func(w *world) {
				first := w.got(w.process().Lock(w.Context()))
				var calls []*call
				for _, side := range tc.come {
					w.at(w.now() + 10*time.Millisecond)
					if side == 'r' {
						calls = append(calls, w.begin(w.process().RLock))
					} else {
						calls = append(calls, w.begin(w.process().Lock))
					}
				}
				w.at(w.now() + 10*time.Millisecond)
				w.wantPending(true, calls...)
				w.release(first)
				done := make(map[int]bool)
				for _, want := range tc.in {
					w.at(w.now() + time.Second) // long enough even if a message came before a mark
					got, now := "", []*lease.Lease{}
					for i, c := range calls {
						if !done[i] && !c.pending() {
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
					w.release(now...)
				}
			})
		})
	}
}

func TestReadersAndWritersOfOneProcessStandInOneLine(t *testing.T) {
	play(t, func(w *world) {
		m := w.process()
		first := w.got(m.RLock(w.Context()))
		writer := w.begin(m.Lock)
		r1, r2, r3 := w.begin(m.RLock), w.begin(m.RLock), w.begin(m.RLock)
		w2 := w.begin(m.Lock)
		w.wantPending(true, writer, r1, r2, r3, w2)
		w.release(first)
		l := w.result(writer)
		w.wantPending(true, r1, r2, r3, w2)
		w.release(l)
		in := []*lease.Lease{w.result(r1), w.result(r2), w.result(r3)}
		w.wantPending(true, w2)
		w.release(in...)
		w.release(w.result(w2))
	})
}

func TestAWaitThatEndsLeavesNoMark(t *testing.T) {
	play(t, func(w *world) {
		p1, p2, p3 := w.process(), w.process(), w.process()
		r := w.got(p1.RLock(w.Context()))
		w.at(time.Millisecond)
		ctx, cancel := context.WithTimeout(w.Context(), 500*time.Millisecond)
		defer cancel()
		writer := w.beginWith(ctx, p2.Lock)
		w.at(2 * time.Millisecond)
		reader := w.begin(p3.RLock)
		w.wantMarks(1, 1)
		w.at(499 * time.Millisecond)
		w.wantPending(true, reader)
		<-writer.done
		w.refused(writer.lease, writer.err, holdfast.ErrBusy, context.DeadlineExceeded)
		in := w.result(reader) // the reader is told at once
		if reader.at != 501*time.Millisecond {
			t.Errorf("the reader was in at %v", reader.at)
		}
		w.wantMarks(0, 0)
		w.release(r, in)
	})
}

func TestTheMarkOfADeadWaiterCountsForSecondsOnly(t *testing.T) {
	play(t, func(w *world) {
		net := w.mini.Proxy()
		p1, dead, p3 := w.process(), w.behind(net.Client(t)), w.process()
		r := w.got(p1.RLock(w.Context()))
		w.at(time.Millisecond)
		ctx, cancel := context.WithCancel(w.Context())
		writer := w.beginWith(ctx, dead.Lock)
		w.at(1500 * time.Millisecond)
		w.wantMarks(0, 1)
		net.Refuse(true)
		net.Cut()
		reader := w.begin(p3.RLock)
		w.wantPending(true, reader)
		in := w.result(reader)
		if waited := reader.at - 1500*time.Millisecond; waited > 3750*time.Millisecond+time.Millisecond {
			t.Errorf("the reader waited %v for a dead writer", waited)
		}
		w.release(r, in)
		cancel()
		<-writer.done
		net.Refuse(false)
		w.at(10 * time.Second)
		w.wantTTL(waiting, gone)
	})
}

func TestATryDoesNotOvertake(t *testing.T) {
	play(t, func(w *world) {
		m := w.process()
		mark := func(side string) {
			w.rdb.FlushAll(w.Context())
			ms := float64(time.Now().UnixMilli())
			w.rdb.ZAdd(w.Context(), side, z(ms, "another:1"))
			w.rdb.ZAdd(w.Context(), waiting, z(ms+1000, "another:1"))
		}
		mark(readers)
		w.tries(m.TryLock)
		w.release(w.got(m.TryRLock(w.Context())))
		mark(writers)
		w.tries(m.TryLock)
		w.tries(m.TryRLock)
		w.at(time.Second) // from now on its process is dead
		w.release(w.got(m.TryLock(w.Context())))
		w.wantMarks(0, 0)
	})
}

func TestWithoutMessagesThePollFinds(t *testing.T) {
	play(t, func(w *world) {
		m, other := w.process(), w.process()
		r := w.got(m.RLock(w.Context()))
		w.at(time.Millisecond)
		writer := w.begin(other.Lock)
		w.at(100 * time.Millisecond)
		w.rdb.Del(w.Context(), name) // no message tells of it
		l := w.result(writer)
		if writer.at > 1350*time.Millisecond {
			t.Errorf("in at %v", writer.at)
		}
		w.release(l)
		w.refused(nil, r.Release(w.Context()), holdfast.ErrLost)
	})
}

// The field of a crashed reader stays in Redis while other readers live; its timeout key does not.
func TestACrashedReaderBlocksAWriterNoLongerThanItsLease(t *testing.T) {
	play(t, func(w *world) {
		net := w.mini.Proxy()
		crashed, p2, p3 := w.behind(net.Client(t), holdfast.Renewed(5*time.Second)), w.process(), w.process()
		dead := w.got(crashed.RLock(w.Context()))
		w.at(time.Second)
		net.Refuse(true)
		net.Cut()
		live := w.got(p2.RLock(w.Context()))
		w.at(2 * time.Second)
		writer := w.begin(p3.Lock)
		w.at(4 * time.Second)
		w.release(live)
		l := w.result(writer)
		if writer.at < 5*time.Second || writer.at > 5*time.Second+10*time.Millisecond {
			t.Errorf("the writer was in at %v, want 5s", writer.at)
		}
		w.wantFields("mode=write", l.Owner().String()+":write=1")
		w.release(l)
		w.refused(nil, dead.Err(), holdfast.ErrLost)
		net.Refuse(false)

		// The other way round, the live reader stays for longer than the crashed one.
		net2 := w.mini.Proxy()
		crashed = w.behind(net2.Client(t), holdfast.Renewed(5*time.Second))
		w.got(crashed.RLock(w.Context()))
		live = w.got(p2.RLock(w.Context()))
		net2.Refuse(true)
		net2.Cut()
		w.at(60 * time.Second)
		writer = w.begin(p3.Lock)
		w.at(70 * time.Second)
		w.release(live)
		w.release(w.result(writer))
		if writer.at != 70*time.Second {
			t.Errorf("the writer was in at %v, want 70s", writer.at)
		}
		net2.Refuse(false)
	})
}

// The reply to the try is lost, and the caller gives up. Whatever the request may have taken is
// released, including the mark.
func TestALostReplyLeavesNothing(t *testing.T) {
	for _, side := range []string{"read", "write"} {
		for _, held := range []bool{false, true} {
			t.Run(side, func(t *testing.T) {
				play(t, func(w *world) {
					net := w.mini.Proxy()
					m, other := w.behind(net.Client(t)), w.process()
					f := m.Lock
					if side == "read" {
						f = m.RLock
					}
					w.release(w.got(f(w.Context()))) // this loads the scripts
					var l *lease.Lease
					if held {
						l = w.got(other.Lock(w.Context()))
					}
					net.OnCommand(redistest.Nth("EVALSHA", 1, redistest.Silence))
					ctx, cancel := context.WithTimeout(w.Context(), 200*time.Millisecond)
					defer cancel()
					got, err := f(ctx)
					w.refused(got, err, context.DeadlineExceeded)
					w.at(5 * time.Second)
					w.wantMarks(0, 0)
					if held {
						w.release(l)
					}
					w.wantTTL(name, gone)
				})
			})
		}
	}
}

// The server's clock was an hour ahead when the last writer was let in, and has been set right
// since. Until the clock has caught up, it is unknown who came before that writer.
func TestTheOrderAfterTheClockWasSetBack(t *testing.T) {
	ahead := func(w *world) {
		w.rdb.Set(w.Context(), tokenKey, time.Now().Add(time.Hour).UnixMicro(), 24*time.Hour)
	}
	t.Run("a writer is in", func(t *testing.T) {
		play(t, func(w *world) {
			ahead(w)
			first := w.got(w.process().Lock(w.Context()))
			writer := w.begin(w.process().Lock)
			w.at(10 * time.Millisecond)
			reader := w.begin(w.process().RLock)
			w.at(5 * time.Second)
			w.release(first)
			w.at(6 * time.Second)
			w.wantPending(false, writer)
			w.wantPending(true, reader)
			w.release(w.result(writer))
			w.release(w.result(reader))
		})
	})
	t.Run("a reader is in", func(t *testing.T) {
		play(t, func(w *world) {
			ahead(w)
			first := w.got(w.process().RLock(w.Context()))
			writer := w.begin(w.process().Lock)
			w.at(5 * time.Second)
			w.tries(w.process().TryRLock) // the writer came first
			w.release(first)
			w.release(w.result(writer))
		})
	})
}

// A waiter whose mark is by the old clock does not fall behind newcomers whose marks are by the new
// clock.
func TestAMarkFromBeforeTheClockWasSetBackLosesNoPlace(t *testing.T) {
	play(t, func(w *world) {
		first := w.got(w.process().RLock(w.Context()))
		writer := w.begin(w.process().Lock)
		w.at(2 * time.Second)
		w.wantMarks(0, 1)
		for _, key := range []string{writers, waiting} {
			for _, mark := range w.rdb.ZRangeWithScores(w.Context(), key, 0, -1).Val() {
				w.rdb.ZAdd(w.Context(), key, z(mark.Score+float64(time.Hour.Milliseconds()), mark.Member.(string)))
			}
		}
		w.at(4 * time.Second) // the writer has asked again
		w.tries(w.process().TryRLock)
		w.release(first)
		w.release(w.result(writer))
	})
}

// "x" and "{x}" are two locks, though they share their token and their channel.
func TestALockIsNotHeldUpByTheWaitersOfANameThatSharesItsToken(t *testing.T) {
	play(t, func(w *world) {
		p, q := w.process(), w.process()
		braced := func(i int) *rwlock.RWMutex { return w.clients[i].RWMutex("{" + name + "}") }
		held := w.got(p.Lock(w.Context()))
		writer, reader := w.begin(q.Lock), w.begin(q.RLock)
		w.at(2 * time.Second)
		w.wantPending(true, writer, reader)
		for i, m := range []*rwlock.RWMutex{braced(0), braced(1)} { // the holder's, the waiter's
			w.release(w.got(m.TryRLock(w.Context())))
			w.release(w.got(m.TryLock(w.Context())))
			c := w.begin(m.Lock)
			w.wantPending(false, c)
			if t.Failed() {
				t.Fatalf("process %d waits for the other lock's waiters", i)
			}
			w.release(w.result(c))
		}
		w.release(held)
		w.release(w.result(writer))
		w.release(w.result(reader))
	})
}

// A holder of the first lock asks for the second lock while another waiter waits for the first. If
// both locks had one set of marks, the holder and the waiter would wait for each other.
func TestTwoLocksWhoseNamesShareATokenAreTakenTogether(t *testing.T) {
	play(t, func(w *world) {
		p, q := w.process(), w.process()
		first := w.got(p.Lock(w.Context()))
		waits := w.begin(q.Lock)
		w.at(2 * time.Second)
		second := w.begin(w.clients[0].RWMutex("{" + name + "}").Lock)
		w.wantPending(false, second)
		w.release(w.result(second), first)
		w.release(w.result(waits))
	})
}
