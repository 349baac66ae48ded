// These tests show what the lock looks like in Redis, field by field, and how both sides are
// entered again and given back.

package rwlock_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/hold"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/rwlock"
)

func TestAWriterInRedis(t *testing.T) {
	play(t, func(w *rwWorld) {
		m := w.process()
		told := w.Messages(channel)
		l := w.got(m.Lock(w.Context()))
		w.wantFields("mode=write", l.Owner().String()+":write=1")
		w.wantTTL(name, 30*time.Second)
		if got := w.RDB.Get(w.Context(), tokenKey).Val(); got == "" || l.Token() == 0 {
			t.Errorf("token %d, key %q", l.Token(), got)
		}

		w.At(5 * time.Second)
		inner := w.got(m.Lock(l.Context(w.Context())))
		w.wantFields("mode=write", l.Owner().String()+":write=2")
		w.wantTTL(name, 30*time.Second)
		if inner.Token() != l.Token() || inner.Owner() != l.Owner() {
			t.Errorf("re-entry: token %d and owner %v, want %d and %v", inner.Token(), inner.Owner(), l.Token(), l.Owner())
		}
		w.Release(l)
		w.wantFields("mode=write", l.Owner().String()+":write=1")
		w.Release(inner)
		w.wantTTL(name, gone)
		w.refused(nil, inner.Release(w.Context()), holdfast.ErrReleased)
		if got := told(); !slices.Equal(got, []string{"5s 1", "5s 0"}) {
			t.Errorf("messages %q, want one to all and one to one, at 5s", got)
		}
	})
}

func TestReadersInRedis(t *testing.T) {
	play(t, func(w *rwWorld) {
		m, other := w.process(), w.process(holdfast.Fixed(40*time.Second))
		told := w.Messages(channel)
		a := w.got(m.RLock(w.Context()))
		w.wantFields("mode=read", a.Owner().String()+"=1")
		w.wantTTL(name, 30*time.Second)
		w.wantTTL(timeout(a, 1), 30*time.Second)
		world.Equal(t, w.RDB.Get(w.Context(), timeout(a, 1)).Val(), "1", "timeout key holds %q")

		w.At(2 * time.Second)
		b := w.got(other.RLock(w.Context()))
		inner := w.got(m.RLock(a.Context(w.Context())))
		w.wantFields("mode=read", a.Owner().String()+"=2", b.Owner().String()+"=1")
		w.wantTTL(name, 40*time.Second) // the longest time that any of its holds needs
		w.wantTTL(timeout(a, 1), 30*time.Second)
		w.wantTTL(timeout(a, 2), 30*time.Second)
		w.wantTTL(timeout(b, 1), 40*time.Second)

		w.Release(a) // holds may be released in any order
		w.wantFields("mode=read", a.Owner().String()+"=1", b.Owner().String()+"=1")
		w.wantTTL(timeout(a, 1), 30*time.Second)
		w.wantTTL(timeout(a, 2), gone)
		w.Release(b)
		w.wantFields("mode=read", a.Owner().String()+"=1")
		w.wantTTL(timeout(b, 1), gone)
		w.wantTTL(name, 40*time.Second) // a release never shortens it
		w.At(3 * time.Second)
		w.Release(inner)
		w.wantTTL(name, gone)
		w.wantTTL(timeout(a, 1), gone)
		if got := told(); !slices.Equal(got, []string{"3s 1", "3s 0"}) {
			t.Errorf("messages %q, want one to all and one to one, at 3s", got)
		}
	})
}

func TestAReaderIsRenewedAloneAndALostOneIsTold(t *testing.T) {
	play(t, func(w *rwWorld) {
		m, fixed := w.process(), w.process(holdfast.Fixed(15*time.Second))
		a := w.got(m.RLock(w.Context()))
		b := w.got(fixed.RLock(w.Context()))
		w.At(11 * time.Second)
		w.wantTTL(name, 29*time.Second)
		w.wantTTL(timeout(a, 1), 29*time.Second)
		w.wantTTL(timeout(b, 1), 4*time.Second)
		w.At(16 * time.Second)
		w.refused(nil, b.Err(), holdfast.ErrLost)

		// A read hold lives as long as its timeout key.
		w.RDB.Del(w.Context(), timeout(a, 1))
		w.At(20*time.Second + 100*time.Millisecond)
		w.refused(nil, a.Err(), holdfast.ErrLost)
		l := w.got(w.process().TryLock(w.Context())) // both fields are zombies
		w.wantFields("mode=write", l.Owner().String()+":write=1")
		w.wantTTL(name, 30*time.Second)
		w.Release(l)
	})
}

// The tokens of writers grow even where time stands still, and where the data are lost. A reader has the
// token of the last writer.
func TestTokens(t *testing.T) {
	play(t, func(w *rwWorld) {
		a, b := w.process(), w.process()
		var last int64
		for i := range 20 { // all grants are in one microsecond
			if i == 10 {
				w.At(time.Millisecond) // after this no token is ahead of the clock
				w.RDB.FlushAll(w.Context())
			}
			for _, m := range []*rwlock.RWMutex{a, b} {
				known := last
				if i == 10 && m == a {
					known = 0
				}
				r := w.got(m.RLock(w.Context()))
				world.Equal(t, r.Token(), known, "token of a reader %d, want the last writer's, %d", known)
				w.Release(r)
				l := w.got(m.Lock(w.Context()))
				if l.Token() <= last {
					t.Errorf("token %d after %d", l.Token(), last)
				}
				last = l.Token()
				w.Release(l)
			}
		}
	})
}

// It waits for Redis too.
func TestAReadLockUnderAWriteLockWaitsForRedis(t *testing.T) {
	play(t, func(w *rwWorld) {
		m := w.process()
		l := w.got(m.Lock(w.Context()))
		w.Processes[0].Unplug(true)
		ctx, cancel := context.WithTimeout(l.Context(w.Context()), 8*time.Second)
		defer cancel()
		r := w.beginWith(ctx, m.RLock)
		w.At(5 * time.Second)
		w.Processes[0].Unplug(false)
		w.Release(w.result(r), l)
	})
}

func TestAReadReleasedUnderAWriteDoesNotShortenIt(t *testing.T) {
	play(t, func(w *rwWorld) {
		long := w.process(holdfast.Fixed(time.Minute))
		l := w.got(long.Lock(w.Context()))
		short := w.Processes[0].RWMutex(name, holdfast.Fixed(2*time.Second))
		r := w.got(short.RLock(l.Context(w.Context())))
		w.wantTTL(name, time.Minute)
		w.At(time.Second)
		w.Release(r)
		w.wantTTL(name, 59*time.Second)
		again := w.got(short.Lock(l.Context(w.Context()))) // the maximum, not the sum
		w.wantTTL(name, 59*time.Second)
		w.Release(again, l)
	})
}

// A reader under the writer is a hold of its own, which stays when the writer leaves, and lets the readers in that wait.
func TestADowngradeWakesTheReadersThatWait(t *testing.T) {
	play(t, func(w *rwWorld) {
		m, other := w.process(), w.process()
		l := w.got(m.Lock(w.Context()))
		held := l.Context(w.Context())
		r := w.got(m.RLock(held))
		world.Equal(t, r.Token(), l.Token(), "token %d, want %d", l.Token())
		w.Release(w.got(m.TryRLock(held)), w.got(m.Lock(r.Context(held)))) // r's context also carries the write lease
		w.wantFields("mode=write", l.Owner().String()+":write=1", r.Owner().String()+"=1")
		w.tries(other.TryRLock)
		var waits []*world.Attempt
		for range 20 {
			waits = append(waits, w.begin(other.RLock), w.begin(m.RLock))
		}
		w.wantPending(true, waits...)
		w.At(10*time.Second + 300*time.Millisecond)
		w.Release(l)
		for _, c := range waits {
			got := w.result(c)
			world.Equal(t, c.At, w.Now(), "a reader was in at %v, want %v", w.Now())
			w.Release(got)
		}
		w.tries(other.TryLock)
		w.At(100 * time.Second) // the reader's renewal goes on
		w.wantFields("mode=read", r.Owner().String()+"=1")
		w.wantTTL(timeout(r, 1), w.PTTL(name))
		w.Release(r)
		w.wantTTL(name, gone)
	})
}

func TestAReaderIsRefusedTheWriteSide(t *testing.T) {
	play(t, func(w *rwWorld) {
		m := w.process()
		r := w.got(m.RLock(w.Context()))
		held := r.Context(w.Context())
		before := w.Mini.Snapshot()
		for _, f := range []func(context.Context) (*lease.Lease, error){m.Lock, m.TryLock, m.WLocker().Lock} {
			l, err := f(held)
			w.refused(l, err, holdfast.ErrUpgrade)
			if !strings.Contains(err.Error(), `"myLock"`) {
				t.Errorf("error %q", err)
			}
		}
		if after := w.Mini.Snapshot(); after != before || w.Now() != 0 {
			t.Errorf("after %v:\n%s\nwas\n%s", w.Now(), after, before)
		}
		w.Release(r)
		w.refused(nil, func() error { _, err := m.Lock(held); return err }(), holdfast.ErrReleased)
		w.Release(w.got(m.Lock(w.Context())))
	})
}

func TestALostWriteHoldGrantsNoReadHold(t *testing.T) {
	play(t, func(w *rwWorld) {
		m := w.process()
		l := w.got(m.Lock(w.Context()))
		held := context.WithoutCancel(l.Context(w.Context()))
		w.RDB.Del(w.Context(), name)
		_, err := m.RLock(held)
		w.refused(nil, err, holdfast.ErrLost)
		w.refused(nil, l.Err(), holdfast.ErrLost)
		_, err = m.RLock(held)
		w.refused(nil, err, holdfast.ErrLost)
	})
}

func TestQueries(t *testing.T) {
	type answers struct {
		locked, rlocked  bool
		reads, holds     int
		rholds, rholders int
		remaining        time.Duration
	}
	ask := func(w *rwWorld, m *rwlock.RWMutex, writer, reader lease.Owner) (a answers) {
		w.Helper()
		ctx := w.Context()
		var errs [9]error
		var by, rby bool
		var holder lease.Owner
		var holders []lease.Owner
		a.locked, errs[0] = m.Locked(ctx)
		a.rlocked, errs[1] = m.RLocked(ctx)
		a.reads, errs[2] = m.ReadHolds(ctx)
		a.holds, errs[3] = m.HoldCount(ctx, writer)
		a.rholds, errs[4] = m.RHoldCount(ctx, reader)
		a.remaining, errs[5] = m.Remaining(ctx)
		by, errs[6] = m.HeldBy(ctx, writer)
		rby, errs[7] = m.RHeldBy(ctx, reader)
		holders, errs[8] = m.RHolders(ctx)
		a.rholders = len(holders)
		if err := errors.Join(errs[:]...); err != nil {
			w.Error(err)
		}
		holder, err := m.Holder(ctx)
		if err != nil || by != (a.holds > 0) || rby != (a.rholds > 0) || (holder == writer) != by {
			w.Errorf("held by %v, %v; holder %v, %v", by, rby, holder, err)
		}
		return a
	}
	play(t, func(w *rwWorld) {
		m, other := w.process(), w.process(holdfast.Fixed(10*time.Second))
		nobody := lease.Owner(hold.NewOwner("00000000-0000-0000-0000-000000000000", 1))
		want := func(m *rwlock.RWMutex, writer, reader lease.Owner, want answers) {
			w.Helper()
			if got := ask(w, m, writer, reader); got != want {
				w.Errorf("at %v:\n got %+v\nwant %+v", w.Now(), got, want)
			}
		}
		want(m, nobody, nobody, answers{})
		l := w.got(m.Lock(w.Context()))
		r := w.got(m.RLock(l.Context(w.Context())))
		rr := w.got(m.RLock(r.Context(w.Context())))
		want(other, l.Owner(), r.Owner(), answers{true, true, 2, 1, 2, 1, 30 * time.Second})
		w.Release(l)
		b := w.got(other.RLock(w.Context()))
		want(other, nobody, b.Owner(), answers{false, true, 3, 0, 1, 2, 30 * time.Second})
		w.Release(rr, r)
		want(m, nobody, b.Owner(), answers{false, true, 1, 0, 1, 1, 10 * time.Second})
		w.Release(b)
		want(m, nobody, nobody, answers{})
	})
}

func TestForceRelease(t *testing.T) {
	play(t, func(w *rwWorld) {
		m, other := w.process(), w.process()
		l := w.got(m.Lock(w.Context()))
		r := w.got(m.RLock(l.Context(w.Context())))
		waits := w.begin(other.RLock)
		force := func(f func(context.Context, ...holdfast.Owner) (bool, error), want bool, from ...holdfast.Owner) {
			w.Helper()
			if got, err := f(w.Context(), from...); err != nil || got != want {
				w.Errorf("forced: %v, %v, want %v", got, err, want)
			}
		}
		gone := holdfast.Owner{}
		force(other.ForceRelease, false, gone)
		force(other.ForceRelease, true, gone, l.Owner())
		force(other.ForceRelease, false)
		b := w.result(waits) // the reader under the write hold has stayed, and b joins it
		w.wantFields("mode=read", r.Owner().String()+"=1", b.Owner().String()+"=1")
		w.At(10*time.Second + 100*time.Millisecond)
		w.refused(nil, l.Err(), holdfast.ErrLost) // the renewal of l finds out
		if err := r.Err(); err != nil {
			t.Errorf("the reader: %v", err)
		}

		writer := w.begin(other.Lock)
		w.wantPending(true, writer)
		force(m.RForceRelease, false, gone)
		force(m.RForceRelease, true, gone, r.Owner())
		w.refused(nil, r.Err(), holdfast.ErrLost) // at once: the same Client releases
		w.wantFields("mode=read", b.Owner().String()+"=1")
		force(m.RForceRelease, true)
		w.Release(w.result(writer))
		force(m.RForceRelease, false)
		w.At(25 * time.Second)
		w.refused(nil, b.Err(), holdfast.ErrLost)

		l = w.got(m.Lock(w.Context()))
		r = w.got(m.RLock(l.Context(w.Context())))
		force(m.RForceRelease, true)
		w.refused(nil, r.Err(), holdfast.ErrLost)
		w.wantFields("mode=write", l.Owner().String()+":write=1") // the writer is still in
		w.Release(l)
	})
}

// A reader under a write lease keeps the lock in Redis. It does not keep the write lease when that
// is over: other readers get in.
func TestAWriteLeaseThatIsOverIsNotKeptByItsReader(t *testing.T) {
	for _, tc := range []struct {
		name  string
		write lease.Option
		read  lease.Option
		told  time.Duration // when the writer learns of the end, at the latest
		over  time.Duration // when it is over in Redis
	}{
		{"fixed", holdfast.Fixed(3 * time.Second), holdfast.Renewed(30 * time.Second), 3 * time.Second, 3 * time.Second},
		{"fixed, and so is the reader", holdfast.Fixed(3 * time.Second), holdfast.Fixed(time.Minute), 3 * time.Second, 3 * time.Second},
		{"held for too long", holdfast.MaxHold(5 * time.Second), holdfast.Renewed(30 * time.Second), 5 * time.Second, 30 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			play(t, func(w *rwWorld) {
				p, other := w.process(), w.process()
				writer := w.got(w.Processes[0].RWMutex(name, tc.write).Lock(w.Context()))
				r := w.got(w.Processes[0].RWMutex(name, tc.read).RLock(writer.Context(w.Context())))
				waits := w.begin(other.RLock)
				w.At(tc.told)
				w.refused(nil, writer.Err())
				if writer.Err() == nil {
					t.Error("the write lease goes on")
				}
				if tc.over > tc.told {
					w.At(tc.over - time.Second)
					w.wantPending(true, waits) // the writer's work may still be going on
				}
				w.At(tc.over)
				w.wantPending(false, waits)
				joined := w.result(waits)
				w.wantFields("mode=read", r.Owner().String()+"=1", joined.Owner().String()+"=1")
				if err := r.Err(); err != nil {
					t.Errorf("the reader: %v", err)
				}
				w.Release(joined, r)
				w.Release(w.got(p.TryLock(w.Context())))
			})
		})
	}
}

// Redis is out of reach when the write lease ends, and stays so for longer than that lease was.
func TestAWriteLeaseThatEndedInAnOutageIsNotKeptByItsReader(t *testing.T) {
	for _, how := range []string{"ended by itself", "released"} {
		t.Run(how, func(t *testing.T) {
			play(t, func(w *rwWorld) {
				other, c := w.process(), w.Process()
				net := c.Net
				writer := w.got(c.RWMutex(name, holdfast.Renewed(3*time.Second)).Lock(w.Context()))
				r := w.got(c.RWMutex(name, holdfast.Renewed(time.Minute)).RLock(writer.Context(w.Context())))
				net.Refuse(true)
				net.Cut()
				if how == "released" {
					if err := writer.Release(w.Context()); err == nil {
						t.Error("released while Redis is out of reach")
					}
				}
				w.At(40 * time.Second) // longer than a request may be late
				if writer.Err() == nil {
					t.Error("the write lease goes on")
				}
				net.Refuse(false)
				waits := w.begin(other.RLock)
				w.At(50 * time.Second)
				w.wantPending(false, waits)
				w.wantFields("mode=read", r.Owner().String()+"=1", w.result(waits).Owner().String()+"=1")
				w.Release(waits.Lease, r)
			})
		})
	}
}

// Another program has removed the lock's expiry. A reader that joins, nests or renews does not give
// the lock an expiry again.
func TestALockWithoutEndIsGivenNoneByItsReaders(t *testing.T) {
	play(t, func(w *rwWorld) {
		a, b := w.process(), w.process()
		first := w.got(a.RLock(w.Context()))
		w.RDB.Persist(w.Context(), name)
		w.RDB.Persist(w.Context(), timeout(first, 1))
		joined := w.got(b.TryRLock(w.Context()))
		w.wantTTL(name, -1)
		nested := w.got(b.RLock(joined.Context(w.Context())))
		w.wantTTL(name, -1)
		w.Release(nested)
		w.At(20 * time.Second)
		w.wantTTL(name, -1)
		w.Release(first, joined)
	})
}

// A Redisson reader with a shorter watchdog sets the lock's expiry to its own watchdog time, every
// third of that time. The first renewal that finds the lock cut short says so, once. From then on
// the lock is renewed early enough that it does not run out when the Redisson reader is gone.
func TestAReaderWhoseLockIsCutShortIsRenewedSoonerAndSaysSo(t *testing.T) {
	play(t, func(w *rwWorld) {
		var log redistest.Log
		c := w.Process(holdfast.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		r := w.got(c.RWMutex(name).RLock(w.Context()))
		other := w.process()
		cut := func(until time.Duration) {
			for w.Now() < until {
				w.RDB.PExpire(w.Context(), name, 3*time.Second)
				w.At(w.Now() + time.Second)
			}
		}
		cut(9 * time.Second)
		world.Equal(t, log.String(), "", "before a renewal: %s")
		cut(30 * time.Second)
		w.RDB.PExpire(w.Context(), name, 3*time.Second) // and then the Redisson reader dies
		w.At(34 * time.Second)
		w.tries(other.TryLock)
		if err := r.Err(); err != nil {
			t.Errorf("the reader: %v", err)
		}
		if text := log.String(); strings.Count(text, "cuts this one short") != 1 || !strings.Contains(text, name) || !strings.Contains(text, "lease=30s") {
			t.Errorf("logged: %s", text)
		}
		w.Release(r)
	})
}
