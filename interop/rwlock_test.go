// Readers and writers of both languages share one lock.

package interop

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// Readers of both languages are in one hash, each with a field and a timeout key. A writer of
// either language is in when the last reader has left.
func TestReadersOfBothLanguagesAreInTogether(t *testing.T) {
	everywhere(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		reader, writer := redisson.Thread("reader"), redisson.Thread("writer")
		m := w.holdfast().RWMutex("doc")

		w.do(reader, "read.lock", "doc")
		w.do(reader, "read.lock", "doc") // nested
		l := w.grant(w.ctx, m.RLock)
		fields := w.hash("doc")
		if fields["mode"] != "read" || fields[l.Owner().String()] != "1" || len(fields) != 3 {
			t.Errorf("two readers: %v", fields)
		}
		if keys, err := redistest.Keys(w.ctx, w.rdb, "{doc}:*:rwlock_timeout:*"); err != nil || len(keys) != 3 {
			t.Errorf("timeout keys of two holds of Java's and one of Go's: %q, %v", keys, err)
		}
		w.expect("true", reader, "read.locked", "doc")
		w.expect("2", reader, "read.count", "doc")
		w.expect("false", writer, "write.locked", "doc")
		if holders, err := m.RHolders(w.ctx); err != nil || len(holders) != 2 {
			t.Errorf("RHolders() = %v, %v", holders, err)
		}

		w.expect("false", writer, "write.tryLock", "doc", 0, -1)
		w.notIn("TryLock()", m.TryLock)
		redistest.Must(t, l.Release(w.ctx))
		w.do(reader, "read.unlock", "doc")
		w.expect("false", writer, "write.tryLock", "doc", 0, -1)
		w.do(reader, "read.unlock", "doc")
		w.holds("doc", nil)
		w.expect("true", writer, "write.tryLock", "doc", 0, -1)
		w.notIn("TryRLock()", m.TryRLock)
		if owner, err := m.Holder(w.ctx); err != nil || w.hash("doc")[owner.String()+":write"] != "1" {
			t.Errorf("Holder() = %v, %v", owner, err)
		}
		w.do(writer, "write.unlock", "doc")
		w.holds("doc", nil)
	})
}

// A writer of Go wakes all readers of Java, and not only one in each process.
func TestAWriterOfGoWakesAllReadersOfJava(t *testing.T) {
	everywhere(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		l := w.grant(w.ctx, w.holdfast().RWMutex("doc").Lock)
		const readers = 10
		sleeps := w.asked(scripts, 2*readers)
		var waiting []*Call
		for i := range readers {
			waiting = append(waiting, redisson.Thread(fmt.Sprint(i)).Go("read.lock", "doc"))
		}
		sleeps()
		w.parked()
		released := time.Now()
		redistest.Must(t, l.Release(w.ctx))
		for i, call := range waiting {
			w.result(call)
			w.soon(fmt.Sprintf("reader %d was in after", i), call.At().Sub(released), byMessage)
		}
	})
}

// A writer of Java wakes all readers of Go, in two Clients.
func TestAWriterOfJavaWakesAllReadersOfGo(t *testing.T) {
	everywhere(t, Last3, func(t *testing.T, w *world) {
		writer := w.redisson("r").Thread("writer")
		w.do(writer, "write.lock", "doc")
		const readers = 5
		granted := make(chan error, 2*readers)
		sleeps := w.asked(scripts, 4)
		for range 2 {
			m := w.holdfast().RWMutex("doc")
			for range readers {
				go func() {
					_, err := m.RLock(w.ctx)
					granted <- err
				}()
			}
		}
		sleeps()
		released := time.Now()
		w.do(writer, "write.unlock", "doc")
		for range 2 * readers {
			redistest.Check(t, ended(t, "a reader of Go", patience, granted))
		}
		w.soon("all readers were in after", time.Since(released), byMessage)
	})
}

// A writer takes the read side too, and then leaves the write side. When Redisson does this, it
// tells nobody. So readers of Java wait for the end of the lock, and readers of Go look again
// within a second. Holdfast tells all waiters.
func TestDowngrading(t *testing.T) {
	everywhere(t, Last3, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		writer, reader := redisson.Thread("writer"), redisson.Thread("reader")
		m := w.holdfast().RWMutex("doc")

		w.do(writer, "write.lock", "doc")
		w.do(writer, "read.lock", "doc")
		granted := w.asks(m.RLock)
		downgraded := time.Now()
		w.do(writer, "write.unlock", "doc")
		l := w.granted("Go's reader after Java's downgrade", granted)
		w.soon("Go's reader was in after", time.Since(downgraded), poll+late)
		w.do(writer, "read.unlock", "doc")
		redistest.Must(t, l.Release(w.ctx))

		write := w.grant(w.ctx, m.Lock)
		read := w.grant(write.Context(w.ctx), m.RLock)
		waiting := w.sleeps(reader, "read.lock", "doc")
		downgraded = time.Now()
		redistest.Must(t, write.Release(w.ctx))
		w.result(waiting)
		w.soon("after Go's downgrade Java's reader was in after", waiting.At().Sub(downgraded), byMessage)
		w.do(reader, "read.unlock", "doc")
		redistest.Must(t, read.Release(w.ctx))
		w.holds("doc", nil)
	})
}

// Each side is taken by force, by the language that does not hold it.
func TestEachSideIsTakenByForce(t *testing.T) {
	everywhere(t, Last3, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		m := w.holdfast(holdfast.WithDefaults(holdfast.Renewed(lease))).RWMutex("doc")

		w.do(thread, "write.lock", "doc")
		if forced, err := m.ForceRelease(w.ctx); err != nil || !forced {
			t.Errorf("ForceRelease() = %v, %v", forced, err)
		}
		w.refused("IllegalMonitorStateException", thread, "write.unlock", "doc")
		w.do(thread, "read.lock", "doc")
		if forced, err := m.RForceRelease(w.ctx); err != nil || !forced {
			t.Errorf("RForceRelease() = %v, %v", forced, err)
		}
		w.holds("doc", nil)

		for _, c := range []struct {
			kind string
			lock locking
		}{{"write", m.Lock}, {"read", m.RLock}} {
			l := w.grant(w.ctx, c.lock)
			held := l.Context(w.ctx)
			w.expect("true", thread, c.kind+".forceUnlock", "doc")
			ended(t, "the context of a "+c.kind+" lease that was taken away", lease/3+late, held.Done())
			redistest.Is(w.t, "Release()", l.Release(w.ctx), holdfast.ErrLost)
			w.holds("doc", nil)
		}
	})
}

// The read lease of a dead reader of Go runs out, although a reader of Java keeps the hash alive.
func TestADeadReaderOfGoKeepsNobodyOut(t *testing.T) {
	everywhere(t, "4.4", func(t *testing.T, w *world) {
		redisson := w.redisson("r", watchdog())
		reader, writer := redisson.Thread("reader"), redisson.Thread("writer")
		over := time.Now().Add(w.ttl(w.besideADeadReader(reader)))
		w.renewed("doc")
		waiting := writer.Go("write.lock", "doc")
		time.Sleep(time.Until(over) + late) // the dead reader's lease ends by the server's clock
		still(t, "Java's writer", waiting.Done())
		left := time.Now()
		w.do(reader, "read.unlock", "doc")
		w.result(waiting)
		w.soon("once the last live reader had left, the writer was in after", waiting.At().Sub(left), byMessage)
	})
}

// besideADeadReader makes a thread of Java read "doc", beside a reader of Go that dies. It returns the key with that
// reader's lease.
func (w *world) besideADeadReader(reader Thread) (key string) {
	w.t.Helper()
	w.do(reader, "read.lock", "doc")
	dead := w.holdfast(holdfast.WithDefaults(holdfast.Renewed(lease)))
	l := w.grant(w.ctx, dead.RWMutex("doc").RLock)
	dead.Close() // as if killed: its hold is left to run out
	return fmt.Sprintf("{doc}:%s:rwlock_timeout:1", l.Owner())
}

// The watchdog of a Redisson before 4.4 renews the readers of other clients too, for as long as it
// has a reader of its own. A writer is in soon after that.
func TestAnOldRedissonKeepsDeadReaders(t *testing.T) {
	eachVersion(t, Last3, func(t *testing.T, version string) {
		if !older(version, "4.4") {
			t.Skip("it renews its own alone")
		}
		w := newWorld(t, version, "single")
		reader := w.redisson("r", watchdog()).Thread("reader")
		kept := w.besideADeadReader(reader)
		time.Sleep(2 * lease) // on the server's clock
		if w.ttl(kept) <= 0 {
			t.Error("the dead reader's lease is over: say so in docs/redisson-interop.md")
		}
		w.do(reader, "read.unlock", "doc")
		over := time.Now().Add(w.ttl(kept))
		w.grant(w.ctx, w.holdfast().RWMutex("doc").Lock)
		w.inWhenOver(time.Now(), over)
	})
}
