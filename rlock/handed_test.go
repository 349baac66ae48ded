// This file is about how a waiter begins its lease when a release hands it the lock, by the message
// alone.

package rlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// handed makes another process release the lock, and so hand it to the waiter of one process.
// handed returns the waiter's lease, which has just been granted.
func handed(w *world.World, waiter *world.Process, m lease.Locker) *lease.Lease {
	w.T.Helper()
	held := w.Lock(w.T.Context(), w.Process().MyLock)
	next := w.GoLock(w.T.Context(), m)
	w.At(w.Now() + 1500*time.Millisecond) // the waiter has asked since, to keep its place
	waiter.Forget()
	w.Release(held)
	l, err := next.Result()
	if err != nil {
		w.T.Fatal(err)
	}
	if l.Token() <= held.Token() {
		w.T.Errorf("token %d after %d", l.Token(), held.Token())
	}
	return l
}

// A waiter that is handed the lock sends no request before its lease begins. If it goes on, it
// sends a request for its whole lease. Until then its lease ends with its place, as Redis has it.
func TestHanded_ByTheMessageAlone(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		for name, m := range map[string]lease.Locker{"mutex": p.MyLock, "fair": p.FairMutex(world.Name)} {
			l := handed(w, p, m)
			if n := p.Runs(""); n != 0 {
				t.Errorf("%s: %d requests before it began", name, n)
			}
			w.WantHolder(l.Owner(), 0)
			lasts, ends := w.PTTL("myLock"), time.Until(l.Deadline())
			if ends >= lasts || ends < lasts/2 {
				t.Errorf("%s: ends in %v, in Redis in %v", name, ends, lasts)
			}
			if count, err := p.MyLock.HoldCount(t.Context(), l.Owner()); count != 1 {
				t.Errorf("%s: the count is %d (%v)", name, count, err)
			}
			w.At(w.Now() + 200*time.Millisecond)
			if n := p.Runs(""); n != 1+1 {
				t.Errorf("%s: %d requests, want a renewal, and the question for the count", name, n)
			}
			if lasts := w.PTTL("myLock"); lasts < 29*time.Second || time.Until(l.Deadline()) < 29*time.Second {
				t.Errorf("%s: then it lasts %v, and ends in %v", name, lasts, time.Until(l.Deadline()))
			}
			w.Release(l)
			w.WantFree()
		}
	})
}

// A holder that hears nothing more from Redis is told in time, although its lease was meant to be
// longer.
func TestHanded_ToldBeforeItEnds(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := handed(w, p, p.MyLock)
		lasts := w.PTTL("myLock")
		p.Unplug(true)
		<-l.Done()
		world.WantErr(t, l.Err(), holdfast.ErrLost)
		if left := w.PTTL("myLock"); left <= 0 || left > lasts/2 {
			t.Errorf("told when %v were left of %v", left, lasts)
		}
		p.Unplug(false)
		w.At(w.Now() + 5*time.Second)
		w.WantFree()
	})
}

// A waiter that needs more time than its place has left asks Redis first. This is so for a fixed
// lease, which needs its full length, and for a waiter that Redis has not heard of for long.
func TestHanded_NotEnough(t *testing.T) {
	play(t, "a fixed lease", func(t *testing.T, w *world.World) {
		p := w.Process()
		l := handed(w, p, p.Mutex(world.Name, holdfast.Fixed(time.Minute)))
		if n := p.Runs(""); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		w.WantHolder(l.Owner(), 1)
		w.WantTTL(time.Minute)
		w.Release(l)
	})
	play(t, "a place that was kept long ago", func(t *testing.T, w *world.World) {
		p := w.Process()
		held := w.Lock(t.Context(), w.Process().MyLock)
		next := w.GoLock(t.Context(), p.FairMutex(world.Name))
		w.At(w.Now() + 100*time.Millisecond)
		p.Each(func(world.Sending) redistest.Fault { return redistest.CloseAfterExec }) // p cannot know
		w.At(w.Now() + 4*time.Second)
		before := p.Runs("")
		p.Each(nil)
		w.Release(held)
		l := granted(t, next)
		if ends := time.Until(l.Deadline()); p.Runs("") == before || ends < 29*time.Second {
			t.Errorf("it began without asking, or ends in %v", ends)
		}
		w.Release(l)
		w.At(w.Now() + 5*time.Second)
	})
}

// A waiter does not believe a message if it has lost its place since the message was sent. With its
// place it has lost what was handed to it, and another owner may hold the lock now.
func TestHanded_MessageFromBefore(t *testing.T) {
	for kind, lock := range map[string]func(p *world.Process) lease.Locker{
		"mutex": func(p *world.Process) lease.Locker { return p.MyLock },
		"fair":  func(p *world.Process) lease.Locker { return p.FairMutex(world.Name) },
	} {
		play(t, kind, func(t *testing.T, w *world.World) {
			p := w.Process()
			other := w.Lock(t.Context(), w.Process().MyLock)
			next := w.GoLock(t.Context(), lock(p))
			w.At(100 * time.Millisecond)
			waits := w.RDB.ZRange(t.Context(), queueKey, 0, 0).Val()
			client, number, _ := strings.Cut(waits[0], ":")
			at := keys.Space("").FairLockAt(world.Name)
			w.RDB.ZRem(t.Context(), at.Queue, waits[0]) // as a hand-over does
			w.RDB.ZRem(t.Context(), at.Alive, waits[0])
			for n := p.Runs(""); p.Runs("") == n; {
				w.At(w.Now() + 10*time.Millisecond)
			}
			w.RDB.Publish(t.Context(), at.GrantTo(client), number+" 5 2500")
			if time.Sleep(time.Millisecond); !next.Pending() {
				t.Error("two hold the lock")
			}
			w.Release(other)
			w.Release(granted(t, next))
		})
	}
}

// A message that hands the lock to another waiter, or that makes no sense, is a reason to ask
// Redis, and no more.
func TestHanded_MessagesForOthers(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		held := w.Lock(t.Context(), w.Process().MyLock)
		next := w.GoLock(t.Context(), p.MyLock)
		w.At(100 * time.Millisecond)
		channels := w.RDB.PubSubChannels(t.Context(), "holdfast_lock_grant:{myLock}:*").Val()
		if len(channels) != 1 {
			t.Fatalf("channels %q", channels)
		}
		for _, text := range []string{"", "0", "1", "1 ", " 1", "999 5 2000", "999 5 60000", "1 5", "x 5 2000", "1 x 2000", "1 5 x", "-1 -1 -1", "99999999999999999999 1 2000", "1 5 2000 1"} {
			w.RDB.Publish(t.Context(), channels[0], text)
			if time.Sleep(time.Millisecond); !next.Pending() {
				t.Fatalf("%q let it in", text)
			}
		}
		w.Release(held)
		w.Release(granted(t, next))
	})
}
