// This file is about the place of a process in the queue and the line of its waiters: a release that takes the next place,
// how a waiter begins its lease when it is handed the lock by the message alone, and what may come between.

package rlock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/keys"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// slowToSubscribe delays the confirmation of p's subscriptions by 2 ms, so that a waiter has no
// place in the queue until then.
func slowToSubscribe(p *world.Process) {
	p.Net.OnCommand(func(c redistest.Command) redistest.Fault {
		if strings.EqualFold(c.Name, "SUBSCRIBE") {
			return redistest.Delay(2 * time.Millisecond)
		}
		return p.Observe(c)
	})
}

// heldAndWaited locks with held, which is a lock of p, and starts a waiter for p's mutex. The
// waiter has no place in the queue yet.
func heldAndWaited(p *world.Process, held lease.Locker) (first *holdfast.Lease, next *world.Attempt) {
	p.W.T.Helper()
	slowToSubscribe(p)
	first = p.W.Lock(p.W.T.Context(), held)
	next = p.W.GoLock(p.W.T.Context(), p.MyLock)
	p.W.At(time.Millisecond)
	return first, next
}

// wantHeldAlone fails the test if another process can take the lock while l still holds it.
func wantHeldAlone(t *testing.T, l *holdfast.Lease, other *world.Process) {
	t.Helper()
	c, err := other.MyLock.TryLock(t.Context())
	if err != nil {
		return
	}
	if l.Err() == nil {
		t.Errorf("two hold it: tokens %d and %d", l.Token(), c.Token())
	}
	_ = c.Release(t.Context())
}

// A release takes a place for its process, and its answer is lost. The process does not give up
// that place after a waiter has asked in it and has been granted the lock.
func TestSeat_AskedInBeforeTheReleaseIsAnswered(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, other := w.Process(), w.Process()
		first, next := heldAndWaited(p, p.MyLock)
		reply := make(chan struct{})
		p.Each(func(s world.Sending) redistest.Fault {
			switch {
			case s.Script == world.ReleaseRun && s.N == 1:
				return redistest.CloseAfterExec
			case s.Script == world.ReleaseRun && s.N == 2:
				return redistest.Delay(3 * time.Millisecond)
			case s.Script == world.EnterRun:
				return redistest.HoldReply(reply)
			}
			return redistest.Pass
		})
		go func() { time.Sleep(6 * time.Millisecond); close(reply) }()
		w.Release(first)
		l := granted(t, next)
		w.At(50 * time.Millisecond)
		wantHeldAlone(t, l, other)
		p.Each(nil)
		w.Release(l)
	})
}

// Redis is out of reach until the release is given up. The process does not give up that place in this case either.
func TestSeat_AskedInDuringAnOutage(t *testing.T) {
	for range 20 {
		world.Play(t, func(t *testing.T, w *world.World) {
			p, other := w.Process(), w.Process()
			first, next := heldAndWaited(p, p.MyLock)
			p.Unplug(true)
			go func() { _ = first.Release(t.Context()) }()
			w.At(5200 * time.Millisecond)
			p.Unplug(false)
			l := granted(t, next)
			w.At(w.Now() + 2*time.Second)
			wantHeldAlone(t, l, other)
			_ = l.Release(t.Context())
			w.At(w.Now() + 3*time.Second)
		})
	}
}

// The release of a lock of another kind with the same name takes no place for a Mutex.
func TestSeat_OfAnotherKind(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		held, next := heldAndWaited(p, p.RWMutex(world.Name))
		w.Release(held)
		w.Release(granted(t, next))
	})
}

// A waiter that was handed the lock renews it for the whole lease in time. This is so even if Redis
// is far away and the connection for renewals is not open yet.
func TestHanded_FarAway(t *testing.T) {
	for _, rtt := range []time.Duration{20 * time.Millisecond, 80 * time.Millisecond, 150 * time.Millisecond} {
		for _, after := range []time.Duration{300 * time.Millisecond, time.Second} {
			world.Play(t, func(t *testing.T, w *world.World) {
				p := w.FarAway(rtt)
				held := w.Lock(t.Context(), w.Process().MyLock)
				next := w.GoLock(t.Context(), p.MyLock)
				for p.Runs(world.EnterRun) < 1 {
					time.Sleep(time.Millisecond)
				}
				w.At(w.Now() + after)
				w.Release(held)
				l := granted(t, next)
				w.At(w.Now() + 5*time.Second)
				must(t, l.Err())
				_ = l.Release(t.Context())
				w.At(w.Now() + 5*time.Second)
			})
		}
	}
}

// A client sends a PING on a silent connection when a message was missed. It does not send one at
// each poll of a waiter while another goroutine of the process has a lease that it was handed.
func TestHanded_NoPingAtEachPoll(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		for _, m := range []lease.Locker{p.MyLock, p.FairMutex(world.Name)} {
			l := handed(w, p, m)
			next := w.GoLock(t.Context(), m)
			w.At(w.Now() + 2*time.Second)
			before := p.Net.Count("PING")
			w.At(w.Now() + 12*time.Second)
			if pings := p.Net.Count("PING") - before; pings > 1 {
				t.Errorf("%d PINGs in 12 s", pings)
			}
			w.Release(l)
			w.Release(granted(t, next))
		}
	})
}

// A waiter for a Mutex hears of a hand-over to it even if another waiter of its process waits for
// an RWMutex of the same name.
func TestHanded_BesideAnotherKind(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		held := w.Lock(t.Context(), w.Process().MyLock)
		writer := w.GoLock(t.Context(), p.RWMutex(world.Name))
		w.At(100 * time.Millisecond)
		next := w.GoLock(t.Context(), p.MyLock)
		w.At(1500 * time.Millisecond)
		w.Release(held)
		l := granted(t, next)
		if late := w.Now() - 1500*time.Millisecond; late > 20*time.Millisecond {
			t.Errorf("granted %v after the release", late)
		}
		w.Release(l)
		w.Release(granted(t, writer))
	})
}

// A release may hand the lock to a waiter that is in the queue in Redis, but is not yet in the line
// of its process. The head of the line hears of the hand-over and finds no waiter to tell. The
// waiter asks Redis as soon as it is in the line.
func TestAWaiterThatIsHandedTheFairLockBeforeItStandsInLineHasItAtOnce(t *testing.T) {
	for what, releasedFirst := range map[string]bool{"released before the other comes": true, "and after": false} {
		play(t, what, func(t *testing.T, w *world.World) {
			p := w.Process()
			m := p.FairMutex(world.Name)
			held := w.Lock(t.Context(), m)
			answer := make(chan struct{})
			p.On(world.EnterRun, 1, redistest.HoldReply(answer))
			slow := w.GoLock(t.Context(), m)
			synctest.Wait() // the slow waiter is in the queue, and has not heard so
			if releasedFirst {
				w.Release(held)
			}
			quick := w.GoLock(t.Context(), m)
			w.At(w.Now() + 20*time.Millisecond)
			if !releasedFirst {
				w.Release(held)
			}
			w.At(w.Now() + 20*time.Millisecond)
			close(answer)
			heard := w.Now()
			for i, a := range []*world.Attempt{slow, quick} {
				l := granted(t, a)
				world.Within(t, []string{"slow", "quick"}[i]+" waited", a.At-heard, 0, 5*time.Millisecond)
				w.Release(l)
			}
		})
	}
}

// A message hands the lock to a waiter behind the head of the line. That waiter asks Redis at once,
// and the head does not ask before it.
func TestAHandOverToOneBehindTheHeadCostsOneRoundTrip(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		const trip = 20 * time.Millisecond
		p := w.Process()
		m := p.FairMutex(world.Name)
		held := w.Lock(t.Context(), w.Process().MyLock)
		answer := make(chan struct{})
		p.On(world.EnterRun, 1, redistest.HoldReply(answer))
		slow := w.GoLock(t.Context(), m)
		synctest.Wait()
		quick := w.GoLock(t.Context(), m) // is the head, though the slow one is before it in Redis
		w.At(w.Now() + 20*time.Millisecond)
		close(answer)
		w.At(w.Now() + 20*time.Millisecond)
		p.Each(func(world.Sending) redistest.Fault { return redistest.Delay(trip) })
		released := w.Now()
		w.Release(held)
		l := granted(t, slow)
		world.Within(t, "granted", slow.At-released, trip, trip+5*time.Millisecond)
		p.Each(nil)
		w.Release(l)
		w.Release(granted(t, quick))
	})
}

// A Mutex may have the name of an RWMutex's channel. It is another lock all the same, and its
// waiters stand in a line of their own.
func TestAMutexNamedAsTheChannelOfAnRWMutexHasALineOfItsOwn(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		held := w.Lock(t.Context(), w.Process().RWMutex("x"))
		writer := w.GoLock(t.Context(), p.RWMutex("x"))
		w.At(w.Now() + time.Second)
		mutex := w.GoLock(t.Context(), p.Mutex("redisson_rwlock:{x}"))
		l := granted(t, mutex)
		world.Within(t, "granted", mutex.At, time.Second, time.Second)
		w.Release(l, held)
		w.Release(granted(t, writer))
	})
}

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
	must(w.T, err)
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
			world.Equal(t, p.Runs(""), 0, "%d requests before it began (%s)", name)
			w.WantHolder(l.Owner(), 0)
			lasts, ends := w.PTTL("myLock"), time.Until(l.Deadline())
			if ends >= lasts || ends < lasts/2 {
				t.Errorf("%s: ends in %v, in Redis in %v", name, ends, lasts)
			}
			if count, err := p.MyLock.HoldCount(t.Context(), l.Owner()); count != 1 {
				t.Errorf("%s: the count is %d (%v)", name, count, err)
			}
			w.At(w.Now() + 200*time.Millisecond)
			world.Equal(t, p.Runs(""), 1+1, "%d requests, want a renewal, and the question for the count (%s)", name)
			if lasts := w.PTTL("myLock"); lasts < 29*time.Second || time.Until(l.Deadline()) < 29*time.Second {
				t.Errorf("%s: then it lasts %v, and ends in %v", name, lasts, time.Until(l.Deadline()))
			}
			w.Release(l)
			w.WantFree()
		}
	})
}

// A holder that hears nothing more from Redis is told in time, although its lease was meant to be longer.
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
		world.Equal(t, p.Runs(""), 1, "%d requests, want 1")
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

// A message that hands the lock to another waiter, or that makes no sense, is a reason to ask Redis, and no more.
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
