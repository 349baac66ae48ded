// This file is about Notified: a holder knows at once that its lock was taken from it by force.

package rlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// force takes the lock of that name away by another process.
func force(t *testing.T, q *world.Process, name string) {
	t.Helper()
	if held, err := q.Mutex(name).ForceRelease(t.Context()); !held || err != nil {
		t.Fatalf("force release: %v (%v)", held, err)
	}
	synctest.Wait()
}

// With the option a holder knows at once, without it by the next renewal, and so if the message is lost.
func TestWatched(t *testing.T) {
	const at = 25 * time.Second
	for what, tc := range map[string]struct {
		lock   func(p *world.Process) holdfast.Locker
		name   string
		muted  bool
		latest time.Duration // after the release
	}{
		"a mutex":  {func(p *world.Process) holdfast.Locker { return p.Mutex("m", holdfast.Notified()) }, "m", false, 0},
		"a stripe": {func(p *world.Process) holdfast.Locker { return p.Striped("s", 1, holdfast.Notified()).For("x") }, "s:0", false, 0},
		"fair":     {func(p *world.Process) holdfast.Locker { return p.FairMutex("f", holdfast.Notified()) }, "f", false, 0},
		"a grace": {func(p *world.Process) holdfast.Locker {
			return p.Mutex("m", holdfast.Notified(), holdfast.Grace(grace))
		}, "m", false, 0},
		"fixed": {func(p *world.Process) holdfast.Locker {
			return p.Mutex("m", holdfast.Notified(), holdfast.Fixed(time.Minute))
		}, "m", false, 0},
		"no option": {func(p *world.Process) holdfast.Locker { return p.Mutex("m") }, "m", false, 10 * time.Second},
		"mute":      {func(p *world.Process) holdfast.Locker { return p.Mutex("m", holdfast.Notified()) }, "m", true, 10 * time.Second},
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			l := w.Lock(t.Context(), tc.lock(p))
			ctx := l.Context(t.Context())
			w.At(at)
			if tc.muted {
				p.Mute()
				defer p.Unmute()
			}
			force(t, q, tc.name)
			if tc.latest > 0 {
				world.WantEnd(t, ctx, nil)
			}
			<-l.Done()
			world.WantEnd(t, ctx, holdfast.ErrLost)
			world.Within(t, "notified", w.Now(), at+min(tc.latest, time.Millisecond), at+tc.latest)
			w.RDB.Del(t.Context(), "holdfast_stripes:s")
		})
	}
}

// The lock goes to a waiter when it is taken away. The former holder knows at once here too, though its request is
// lost, or the answer.
func TestWatched_LostReplies(t *testing.T) {
	for what, fault := range map[string]redistest.Fault{
		"request": redistest.DropBefore, "reply": redistest.CloseAfterExec, "half a reply": redistest.HalfReply,
	} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Notified()))
			next := w.GoLock(t.Context(), q.MyLock)
			w.At(25 * time.Second)
			p.On(world.RenewRun, 1, fault)
			force(t, q, world.Name)
			<-l.Done()
			world.WantErr(t, l.Err(), holdfast.ErrLost)
			world.Within(t, "notified", w.Now(), 25*time.Second, 31*time.Second)
			w.Release(granted(t, next))
		})
	}
}

// The lock is taken away between a renewal and its answer, which says that the lock is held. Redis is asked again.
func TestWatched_WhileARenewalIsUnderWay(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Notified()))
		w.At(9900 * time.Millisecond)
		p.On(world.RenewRun, 1, redistest.DelayReply(300*time.Millisecond))
		w.At(10100 * time.Millisecond)
		force(t, q, world.Name)
		<-l.Done()
		world.Within(t, "notified", w.Now(), 10100*time.Millisecond, 10500*time.Millisecond)
	})
}

// A message is a hint to ask. However many come, from whomever, a lease that Redis has goes on, and Redis is asked ten
// times a second at most. If Redis cannot be asked, the lease lasts as long as any other.
func TestAMessageAloneEndsNoLease(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Notified()))
		ctx := l.Context(t.Context())
		channel := fmt.Sprintf("holdfast_lock_grant:{%s}:%s", world.Name, l.Owner().String()[:36])
		w.At(time.Second)
		p.Forget()
		flood := func() {
			for range 1000 {
				w.RDB.Publish(t.Context(), channel, "0")
				time.Sleep(2 * time.Millisecond)
			}
		}
		flood()
		if n := p.Runs(world.RenewRun); n < 2 || n > 21 {
			t.Errorf("%d renewals in two seconds", n)
		}
		world.WantEnd(t, ctx, nil)
		p.On(world.RenewRun, 1, redistest.DropBefore)
		p.Net.OnCommand(func(c redistest.Command) redistest.Fault {
			if isScript(c) {
				return redistest.DropBefore
			}
			return redistest.Pass
		})
		last := time.Until(l.Deadline())
		flood()
		if err := l.Err(); err != nil || last < 20*time.Second {
			t.Errorf("it had %v to go, and has ended: %v", last, err)
		}
		p.Net.OnCommand(nil)
		w.At(40 * time.Second)
		w.Release(l)
	})
}

func isScript(c redistest.Command) bool { return c.Name == "EVALSHA" || c.Name == "EVAL" }

// Goroutines of a process pass the lock on only among those that watch, and each of these knows at once.
func TestWhatIsPassedOnIsWatched(t *testing.T) {
	for what, first := range map[string][]holdfast.LeaseOption{"from one that is notified": {holdfast.Notified()}, "from one that does not": nil} {
		play(t, what, func(t *testing.T, w *world.World) {
			p, q := w.Process(), w.Process()
			l := w.Lock(t.Context(), q.MyLock)
			a := w.GoLock(t.Context(), p.Mutex(world.Name, first...))
			synctest.Wait()
			b := w.GoLock(t.Context(), p.Mutex(world.Name, holdfast.Notified()))
			w.At(time.Second)
			w.Release(l)
			w.Release(granted(t, a))
			l = granted(t, b)
			w.At(12 * time.Second)
			at := w.Now()
			force(t, q, world.Name)
			<-l.Done()
			world.Within(t, "notified", w.Now(), at, at)
		})
	}
}

// A holder without the option listens to nothing, and one that had it no longer does. Then a release by force has
// nobody to notify.
func TestOnlyThoseWhoAreNotifiedListen(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, q := w.Process(), w.Process()
		w.Release(w.Lock(t.Context(), p.MyLock))
		l := w.Lock(t.Context(), p.MyLock)
		if n := p.Net.Count("SUBSCRIBE") + p.Net.Count("SSUBSCRIBE"); n != 0 {
			t.Errorf("%d subscriptions without the option", n)
		}
		force(t, q, world.Name)
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		channels := func() int { return len(w.RDB.PubSubChannels(context.Background(), "holdfast_lock_grant:*").Val()) }
		l = w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Notified()))
		synctest.Wait()
		if n := channels(); n != 1 {
			t.Errorf("%d channels while it is watched", n)
		}
		w.Release(l)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if n := channels(); n != 0 {
			t.Errorf("%d channels after the release", n)
		}
	})
}
