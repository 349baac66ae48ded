// Processes are killed or frozen, or lose what they hold by force: the other language goes on, and whoever wakes up again
// does no harm.

package interop

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// runHolder is a Go process that holds the Mutex "held" until it loses it. The Mutex is on one
// server, or on a cluster if the process is told several addresses.
func runHolder(c *redistest.ChildContext) {
	addrs, _ := c.Next()
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: strings.Split(addrs, ",")})
	defer rdb.Close()
	client := holdfast.New(rdb, holdfast.WithDefaults(holdfast.Renewed(lease)))
	defer client.Close()
	l, err := client.Mutex("held").Lock(c)
	if err != nil {
		c.Say("failed %v", err)
		return
	}
	c.Say("held")
	<-l.Context(c).Done()
	c.Say("ended %v", l.Err())
	c.Say("released %v", l.Release(c))
}

// startHolder starts such a process, and returns when the process holds the lock.
func (w *world) startHolder() *redistest.ChildProc {
	w.t.Helper()
	child := redistest.Start(w.t, "holder", nil)
	child.Send("%s", strings.Join(w.addrs, ","))
	child.Expect("held")
	return child
}

// runWaiter is a Go process that waits for the lock "held" of one server, or of a cluster. It uses
// a Mutex or a FairMutex.
func runWaiter(c *redistest.ChildContext) {
	addrs, _ := c.Next()
	kind, _ := c.Next()
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: strings.Split(addrs, ",")})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	lock := client.Mutex("held").Lock
	if kind == "fair" {
		lock = client.FairMutex("held").Lock
	}
	_, err := lock(c)
	c.Say("ended %v", err)
}

// A waiter of Go is killed, and the lock is handed to it all the same. Java's threads hear of this
// hand-over. So they sleep no longer than the place of a dead process is kept.
func TestAGoWaiterIsKilled(t *testing.T) {
	for kind, keeps := range map[string]time.Duration{"mutex": 2500 * time.Millisecond, "fair": 5 * time.Second} {
		t.Run(kind, func(t *testing.T) {
			everywhere(t, Oldest, func(t *testing.T, w *world) {
				thread := w.redisson("r").Thread("t")
				l, err := w.holdfast().FairMutex("held").Lock(w.ctx) // never releases in the open
				redistest.Must(t, err)
				waiting := w.sleeps(thread, "lock.lock", "held")
				child := redistest.Start(t, "waiter", nil)
				child.Send("%s", strings.Join(w.addrs, ","))
				child.Send("%s", kind)
				redistest.Eventually(t, patience, "the process waits", func() error {
					if n := w.rdb.ZCard(w.ctx, "holdfast_lock_queue:{held}").Val(); n != 1 {
						return fmt.Errorf("%d in the queue", n)
					}
					return nil
				})
				child.Kill()
				released := time.Now()
				redistest.Must(t, l.Release(w.ctx))
				w.result(waiting)
				w.soon("Java is in after the release by", waiting.At().Sub(released), keeps+poll)
				w.do(thread, "lock.unlock", "held")
			})
		})
	}
}

func TestAGoProcessIsKilled(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		child := w.startHolder()
		waiting := w.sleeps(thread, "lock.lock", "held")
		child.Kill()
		over := time.Now().Add(w.ttl("held"))
		w.result(waiting)
		w.inWhenOver(waiting.At(), over)
		w.do(thread, "lock.unlock", "held")
	})
}

func TestAJavaProcessIsKilled(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		w.ownJava()
		m := w.holdfast().Mutex("held")
		w.do(w.redisson("r", watchdog()).Thread("t"), "lock.lock", "held")
		granted := w.asks(m.Lock)
		w.renewed("held")
		w.java.Kill()
		over := time.Now().Add(w.ttl("held"))
		w.granted("Go's grant", granted)
		w.inWhenOver(time.Now(), over)
	})
}

// A reader of Java is killed. A writer of Go is in when the read lease is over.
func TestAJavaReaderIsKilled(t *testing.T) {
	everywhere(t, Last3, func(t *testing.T, w *world) {
		w.ownJava()
		m := w.holdfast().RWMutex("doc")
		w.do(w.redisson("r", watchdog()).Thread("t"), "read.lock", "doc")
		granted := w.asks(m.Lock)
		w.renewed("doc")
		w.java.Kill()
		over := time.Now().Add(w.ttl("doc"))
		w.granted("Go's writer", granted)
		w.inWhenOver(time.Now(), over)
	})
}

// A waiter of Java is killed. It leaves nothing that other waiters must wait for.
func TestAJavaWaiterIsKilled(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		w.ownJava()
		m := w.holdfast().Mutex("held")
		thread := w.redisson("r").Thread("t")
		l := w.grant(w.ctx, m.Lock)
		w.sleeps(thread, "lock.lock", "held")
		w.java.Kill()
		redistest.Must(t, l.Release(w.ctx))
		began := time.Now()
		if _, err := m.Lock(w.ctx); err != nil || time.Since(began) > late {
			t.Errorf("Lock() after %v: %v", time.Since(began), err)
		}
	})
}

// A Java process is frozen for longer than its lease. When it wakes up, its holder is not told of
// the loss. Its unlock throws, and Go's hold stays as it is.
func TestAJavaProcessIsFrozen(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		w.ownJava()
		thread := w.redisson("r", watchdog()).Thread("t")
		m := w.holdfast().Mutex("held")
		w.do(thread, "lock.lock", "held")
		redistest.Must(t, w.java.Freeze())
		l := w.grant(w.ctx, m.Lock)
		redistest.Must(t, w.java.Thaw())
		w.expect("false", thread, "lock.mine", "held")
		w.refused("IllegalMonitorStateException", thread, "lock.unlock", "held")
		w.holds("held", map[string]string{l.Owner().String(): "1"})
	})
}

// A Go process is frozen for longer than its lease. When it wakes up, its holder learns of the loss
// at once, before it sends a request.
func TestAGoProcessIsFrozen(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		child := w.startHolder()
		child.Freeze()
		w.do(thread, "lock.lock", "held")
		before := w.hash("held")
		child.Thaw()
		line, ok := child.TryLine(late)
		if !ok || !strings.HasPrefix(line, "ended ") {
			t.Errorf("within %v the holder said %q", late, line)
		}
		if line := child.Expect("released"); !strings.Contains(line, holdfast.ErrLost.Error()) {
			t.Errorf("its release: %q", line)
		}
		w.holds("held", before)
	})
}

// Java takes the lock from Go by force. Go's holder learns of it with its next renewal, and never
// revives the lock. A waiter is in at once.
func TestJavaTakesTheLockFromGo(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		redisson := w.redisson("r")
		waiter, other := redisson.Thread("waiter"), redisson.Thread("other")
		l := w.grant(w.ctx, w.holdfast(holdfast.WithDefaults(holdfast.Renewed(lease))).Mutex("forced").Lock)
		held := l.Context(w.ctx)
		waiting := w.sleeps(waiter, "lock.lock", "forced")
		forced := time.Now()
		w.expect("true", other, "lock.forceUnlock", "forced")
		w.result(waiting)
		w.soon("the waiter was in after", waiting.At().Sub(forced), late)
		ended(t, "the context of a lease that was taken away", lease/3+late, held.Done())
		redistest.Is(w.t, "Err()", l.Err(), holdfast.ErrLost)
		before := w.hash("forced")
		redistest.Is(w.t, "Release()", l.Release(w.ctx), holdfast.ErrLost)
		w.holds("forced", before)
		w.do(waiter, "lock.unlock", "forced")
		w.expect("false", other, "lock.forceUnlock", "forced")
	})
}

// Go takes the lock from Java by force. Java's watchdog does not revive the lock, and a waiter is
// in at once. Java's holder learns of the loss when it unlocks, not before.
func TestGoTakesTheLockFromJava(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		redisson := w.redisson("r", watchdog())
		holder, waiter := redisson.Thread("holder"), redisson.Thread("waiter")
		client := w.holdfast()
		w.do(holder, "lock.lock", "forced")
		waiting := w.sleeps(waiter, "lock.lock", "forced", 60_000)
		forced := time.Now()
		if held, err := client.Mutex("forced").ForceRelease(w.ctx); err != nil || !held {
			t.Fatalf("ForceRelease() = %v, %v", held, err)
		}
		w.result(waiting)
		w.soon("the waiter was in after", waiting.At().Sub(forced), late)
		w.refused("IllegalMonitorStateException", holder, "lock.unlock", "forced")
		w.do(waiter, "lock.unlock", "forced")

		// By the time that Java has renewed another lock once, it would also have renewed this one.
		w.do(holder, "lock.lock", "sign")
		w.renewed("sign")
		w.holds("forced", nil)
		if held, err := client.Mutex("forced").ForceRelease(w.ctx); err != nil || held {
			t.Errorf("ForceRelease() of a free lock = %v, %v", held, err)
		}
	})
}
