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

// runHolder is a Go process that holds what is called "held" until it loses it: a Mutex, a FairMutex, or a Mutex with a
// short lease. It is on one server, or on a cluster if the process is given several addresses.
func runHolder(c *redistest.ChildContext) {
	addrs, _ := c.Next()
	kind, _ := c.Next()
	rdb := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: strings.Split(addrs, ",")})
	defer rdb.Close()
	client := holdfast.New(rdb)
	defer client.Close()
	l, err := map[string]locking{
		"mutex": client.Mutex("held").Lock,
		"fair":  client.FairMutex("held").Lock,
		"short": client.Mutex("held", holdfast.Renewed(lease)).Lock,
	}[kind](c)
	if err != nil {
		c.Say("failed %v", err)
		return
	}
	c.Say("held")
	<-l.Context(c).Done()
	c.Say("ended %v", l.Err())
	c.Say("released %v", l.Release(c))
}

// holder starts such a process.
func (w *world) holder(kind string) *redistest.ChildProc {
	w.t.Helper()
	child := redistest.Start(w.t, "holder", nil)
	child.Send("%s", strings.Join(w.addrs, ","))
	child.Send("%s", kind)
	return child
}

// A waiter of Go is killed, and the lock is handed to it all the same. Java's threads hear of this
// hand-over. So they sleep no longer than the place of a dead process is kept.
func TestAGoWaiterIsKilled(t *testing.T) {
	for kind, keeps := range map[string]time.Duration{"mutex": 2500 * time.Millisecond, "fair": 5 * time.Second} {
		t.Run(kind, func(t *testing.T) {
			everywhere(t, Oldest, func(t *testing.T, w *world) {
				thread := w.redisson("r").Thread("t")
				l := w.grant(w.ctx, w.holdfast().FairMutex("held").Lock) // never releases in the open
				waiting := w.sleeps(thread, "lock.lock", "held")
				child := w.holder(kind)
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

// A holder of Java is killed, or a reader. Go is in when its lease is over.
func TestAJavaProcessIsKilled(t *testing.T) {
	for kind, p := range map[string]struct {
		since string
		lock  func(c *holdfast.Client) locking
	}{
		"lock": {Oldest, func(c *holdfast.Client) locking { return c.Mutex("held").Lock }},
		"read": {Last3, func(c *holdfast.Client) locking { return c.RWMutex("held").Lock }},
	} {
		t.Run(kind, func(t *testing.T) {
			everywhere(t, p.since, func(t *testing.T, w *world) {
				w.ownJava()
				w.do(w.redisson("r", watchdog()).Thread("t"), kind+".lock", "held")
				granted := w.asks(p.lock(w.holdfast()))
				w.renewed("held")
				w.java.Kill()
				over := time.Now().Add(w.ttl("held"))
				w.granted("Go's grant", granted)
				w.inWhenOver(time.Now(), over)
			})
		})
	}
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

// A Go process is killed, or frozen for longer than its lease: Java is in when that is over. When the process wakes up, its
// holder learns of the loss at once, before it sends a request.
func TestAGoProcessIsKilledOrFrozen(t *testing.T) {
	everywhere(t, Oldest, func(t *testing.T, w *world) {
		thread := w.redisson("r").Thread("t")
		for _, frozen := range []bool{false, true} {
			child := w.holder("short")
			child.Expect("held")
			waiting := w.sleeps(thread, "lock.lock", "held")
			if frozen {
				child.Freeze()
			} else {
				child.Kill()
			}
			over := time.Now().Add(w.ttl("held"))
			w.result(waiting)
			w.inWhenOver(waiting.At(), over)
			if frozen {
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
			}
			w.do(thread, "lock.unlock", "held")
		}
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
