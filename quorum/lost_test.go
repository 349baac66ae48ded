// How the hold of a Quorum ends: by its release, by its loss, by the Close of its Clients; and what Shutdown waits for.

package quorum_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
	"github.com/holdfast-go/holdfast/quorum"
)

// A quorum may lose its members one by one. It is lost when no majority is left, and a release reports
// a loss that nobody had noticed before.
func TestQuorum_Lost(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		p := w.began()
		l := w.lock(p.quorum())
		ctx := l.Context(t.Context())
		for i := range 2 {
			w.Servers[i].Del(name)
			time.Sleep(11 * time.Second)
			redises.WantLive(t, l, ctx)
		}
		w.Servers[2].Del(name)
		time.Sleep(10*time.Second + 100*time.Millisecond)
		redises.WantEnded(t, l, ctx, holdfast.ErrLost)
		w.WantHeldOn(0) // the lease gives back the rest
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		if !l.Deadline().IsZero() {
			t.Error("it has a deadline")
		}
		world.WantErr(t, redistest.Err(p.quorum().Lock(ctx)), holdfast.ErrLost)
		for lost := 2; lost <= 3; lost++ {
			l := w.lock(p.quorum())
			for i := range lost {
				w.Servers[i].Del(name)
			}
			if err := l.Release(t.Context()); errors.Is(err, holdfast.ErrLost) != (lost > 2) || err == nil != (lost <= 2) {
				t.Errorf("released after a loss on %d of 5: %v", lost, err)
			}
			w.WantHeldOn(0)
		}
	})
}

// A holder that is cut off from a majority learns of its loss before another process gets the lock.
func TestQuorum_CutOff(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		p, other := w.began(), w.process()
		l := w.lock(p.quorum())
		ctx := l.Context(t.Context())
		var told time.Duration
		go func() { <-ctx.Done(); told = w.Now() }()
		time.Sleep(12 * time.Second)
		p.Unplug(0, 1, 2)
		next := w.lock(other.quorum())
		synctest.Wait()
		if told == 0 || told >= w.Now() {
			t.Errorf("told at %v, the next was in at %v", told, w.Now())
		}
		redises.WantEnded(t, l, ctx, holdfast.ErrLost)
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
		redises.Release(t, next)
	})
}

// A release that reaches a majority of the servers frees the lock.
func TestQuorum_ReleaseWithoutAll(t *testing.T) {
	play(t, 5, func(t *testing.T, w *stage) {
		p, other := w.began(), w.process()
		l := w.lock(p.quorum())
		p.Unplug(0, 1)
		began := w.Now()
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the release goes on all the same
		if err := l.Release(ctx); err != nil || w.Now()-began > 20*time.Millisecond {
			t.Errorf("%v, in %v", err, w.Now()-began)
		}
		l = w.lock(other.quorum())
		w.WantHeldOn(5) // the first lease still holds two of them
		redises.Release(t, l)
		p.Plug(0, 1)
		w.WantHeldOn(0)

		l = w.lock(p.quorum())
		p.Unplug(0, 1, 2)
		if err := l.Release(t.Context()); err == nil {
			t.Error("released without a majority")
		}
		p.Plug(0, 1, 2)
		w.WantHeldOn(0)
	})
}

// A hold that lost one server and one Client is lost, and it gives back what is left.
func TestQuorum_ClosedAndLost(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.began()
		l := w.lock(p.quorum())
		ctx := l.Context(t.Context())
		p.Clients[0].Close()
		w.Servers[1].Del(name)
		time.Sleep(10*time.Second + 100*time.Millisecond)
		redises.WantEnded(t, l, ctx, holdfast.ErrLost)
		time.Sleep(time.Second)
		if w.Servers[2].Exists(name) {
			t.Error("it is still held by the Client that is open")
		}
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
		time.Sleep(20 * time.Second) // the hold of the closed Client runs out
	})
}

// A lock ends because a majority of its Clients were closed. The other Clients renew their part no more,
// so that their part is free when the lease is over. With Release their part is free at once.
func TestQuorum_ClosedInPart(t *testing.T) {
	for _, released := range []bool{false, true} {
		play(t, 3, func(t *testing.T, w *stage) {
			p := w.began()
			q := p.quorum()
			l := w.lock(q)
			ctx := l.Context(t.Context())
			inner, err := q.Lock(ctx)
			redistest.Must(t, err)
			time.Sleep(9 * time.Second)
			p.Clients[0].Close()
			synctest.Wait()
			redises.WantLive(t, l, ctx) // two are a majority
			p.Clients[1].Close()
			synctest.Wait()
			redises.WantEnded(t, l, ctx, holdfast.ErrClosed)
			world.WantErr(t, redistest.Err(q.Lock(t.Context())), holdfast.ErrClosed)
			if !w.Servers[2].Exists(name) {
				t.Error("it was given back under the work")
			}
			if !released {
				time.Sleep(21 * time.Second)
				w.WantHeldOn(0)
				world.WantErr(t, l.Release(t.Context()), holdfast.ErrClosed)
				return
			}
			for _, one := range []*quorum.Lease{l, l, inner} {
				time.Sleep(time.Second)
				if !w.Servers[2].Exists(name) {
					t.Error("it was given back under the work of another lease")
				}
				world.WantErr(t, one.Release(t.Context()), holdfast.ErrClosed)
			}
			time.Sleep(time.Second)
			if w.Servers[2].Exists(name) {
				t.Error("released, and still held by the Client that is open")
			}
			time.Sleep(20 * time.Second)
		})
	}
}

// The members of a lock end at different times. The lock lasts as long as a majority of them, and its
// deadline says so. What has a longer MaxHold is not renewed after that. Once Done is closed, every context of the lock
// has ended.
func TestQuorum_DeadlineOfTheMajority(t *testing.T) {
	fixed := func(d time.Duration) holdfast.LeaseOption { return holdfast.Fixed(d * time.Second) }
	most := func(d time.Duration) holdfast.LeaseOption { return holdfast.MaxHold(d * time.Second) }
	for _, tc := range []struct {
		members  [3]holdfast.LeaseOption
		lasts    time.Duration
		deadline bool
		cause    error
	}{
		{[3]holdfast.LeaseOption{fixed(5), fixed(5), fixed(5)}, 5 * time.Second, true, holdfast.ErrLost},
		{[3]holdfast.LeaseOption{fixed(20), fixed(5), fixed(10)}, 10 * time.Second, true, holdfast.ErrLost},
		{[3]holdfast.LeaseOption{most(3), most(3), most(3)}, 3 * time.Second, false, holdfast.ErrMaxHold},
		{[3]holdfast.LeaseOption{most(3), most(3), most(60)}, 3 * time.Second, false, holdfast.ErrMaxHold},
	} {
		play(t, 3, func(t *testing.T, w *stage) {
			p := w.began()
			l := w.lock(holdfast.NewQuorumOf(name, p.Clients, lease.DefaultLease, func(c *holdfast.Client) holdfast.Locker {
				return c.Mutex(name, tc.members[slices.Index(p.Clients, c)])
			}))
			granted := w.Now()
			contexts := make([]context.Context, 100)
			for i := range contexts {
				contexts[i] = l.Context(t.Context())
			}
			if left := time.Until(l.Deadline()); tc.deadline && (left > tc.lasts || left < tc.lasts*9/10) {
				t.Errorf("%v left, want %v", left, tc.lasts)
			}
			<-l.Done()
			for _, ctx := range contexts {
				redises.WantEnded(t, l, ctx, tc.cause)
			}
			world.Within(t, "it lasted", w.Now()-granted, tc.lasts*9/10, tc.lasts)
			if text := l.Err().Error(); tc.lasts == 5*time.Second && !strings.Contains(text, "fixed lease over after 5s") {
				t.Errorf("it does not say after how long: %s", text)
			}
			world.WantErr(t, l.Release(t.Context()), tc.cause)
			time.Sleep(28 * time.Second) // the keys stay for so long, as those of any lock
			w.WantHeldOn(0)
		})
	}
}

// A holder that is cut off is notified a Grace before another gets the lock: its members stay held until
// then, or until it releases them.
func TestQuorum_Grace(t *testing.T) {
	for n := range 16 { // a renewal that is sent again in the grace gets through in every other scene
		releases := n%2 == 0
		play(t, 3, func(t *testing.T, w *stage) {
			p := w.began()
			l := w.lock(holdfast.NewQuorum(name, p.Clients, holdfast.Grace(10*time.Second)))
			p.Unplug(0, 1)
			<-l.Done()
			world.WantErr(t, l.Err(), holdfast.ErrLost)
			p.Plug(0, 1)
			time.Sleep(9 * time.Second)
			w.WantHeldOn(3)
			if releases {
				world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
			} else {
				time.Sleep(2 * time.Second)
				w.WantHeldOn(1) // the one that was renewed until the end
				time.Sleep(20 * time.Second)
			}
			w.WantHeldOn(0)
		})
	}
}

// A renewal of a member that is answered after the hold has ended does not cost the rest of the grace.
func TestQuorum_GraceWithARenewalUnderWay(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.began()
		l := w.lock(holdfast.NewQuorum(name, p.Clients, holdfast.Grace(10*time.Second)))
		p.Unplug(0, 1)
		time.Sleep(12 * time.Second)
		answer := make(chan struct{})
		p.Nets[2].OnCommand(func(redistest.Command) redistest.Fault { return redistest.HoldReply(answer) })
		<-l.Done()
		synctest.Wait() // until the members have retired
		close(answer)
		time.Sleep(9 * time.Second)
		w.WantHeldOn(3)
		world.WantErr(t, l.Release(t.Context()), holdfast.ErrLost)
	})
}

func TestShutdownServesWorkUnderAQuorum(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.process()
		l := w.lock(p.quorum())
		ctx := l.Context(t.Context())
		done := p.ShutDown(t.Context())
		more, err := p.Clients[0].Mutex("more").Lock(ctx)
		redistest.Must(t, err)
		redises.Release(t, more)
		world.WantErr(t, redistest.Err(p.Clients[0].Mutex("more").Lock(lease.Bare(ctx))), holdfast.ErrClosed)
		// A quorum, and several locks, under a quorum.
		other := redises.Locked(w.World, ctx, holdfast.NewQuorum("other", p.Clients).Lock)
		all := redises.Locked(w.World, ctx, holdfast.NewMultiLock(p.Clients[1].Mutex("x"), p.Clients[2].Mutex("y")).Lock)
		redises.Release(t, other, all, l)
		for range p.Clients {
			if err := <-done; err != nil || w.Now() > time.Second {
				t.Errorf("%v, after %v", err, w.Now())
			}
		}
	})
}

// Two who share the lease of one server do not both count its grant. What they ask for is work under that lease all the same.
// Nor does the context of a quorum's lease re-enter a lock of one server.
func TestAQuorumReentersNoLockOfOneServer(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p, ctx := w.began(), redistest.Within(t, time.Minute)
		p.Unplug(2)
		one := w.Lock(p.Clients[0].Mutex(name))
		if _, err := p.quorum().TryLock(one.Context(ctx)); !errors.Is(err, holdfast.ErrBusy) {
			t.Fatalf("%v, want ErrBusy", err)
		}
		redises.Release(t, one)
		whole := w.lock(p.quorum())
		world.WantErr(t, redistest.Err(p.Clients[0].Mutex(name).TryLock(whole.Context(ctx))), holdfast.ErrBusy)
		if _, ok := p.Clients[0].Mutex(name).LeaseFrom(whole.Context(ctx)); ok {
			t.Error("the quorum's context carries the lease on one server")
		}
		redises.Release(t, whole)
		other := w.Lock(p.Clients[0].Mutex("other"))
		done := (&redises.Process{Clients: p.Clients[:1]}).ShutDown(t.Context())
		redises.Release(t, redises.Locked(w.World, other.Context(ctx), p.quorum().Lock))
		redises.Release(t, other)
		redistest.Check(t, <-done)
	})
}

// A Client whose server was lost from the quorum has no part in the work any more.
func TestShutdownServesAQuorumOnlyWhereItIsHeld(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.began()
		l := w.lock(p.quorum())
		ctx := l.Context(t.Context())
		keeps := w.Lock(p.Clients[2].Mutex("keeps")) // so that its Shutdown waits
		w.Servers[2].Del(name)
		time.Sleep(11 * time.Second)
		redises.WantLive(t, l, ctx)
		done := p.ShutDown(t.Context())
		for i, c := range p.Clients {
			more, err := c.Mutex("more").Lock(ctx)
			if (err == nil) != (i < 2) {
				t.Errorf("server %d: %v", i, err)
			}
			if err == nil {
				_ = more.Release(t.Context())
			} else {
				world.WantErr(t, err, holdfast.ErrClosed)
			}
		}
		redises.Release(t, l)
		more, err := p.Clients[2].Mutex("more").Lock(context.WithoutCancel(ctx))
		if err == nil {
			_ = more.Release(t.Context())
		}
		world.WantErr(t, err, holdfast.ErrClosed)
		redises.Release(t, keeps)
		for range p.Clients {
			redistest.Check(t, <-done)
		}
	})
}
