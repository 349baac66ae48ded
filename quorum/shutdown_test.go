// Work under a lease on a quorum is work under way for each Client that has a part in it: its
// Shutdown waits for it, and serves it.

package quorum_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

func TestShutdownServesWorkUnderAQuorum(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.process()
		l := w.lock(p.quorum())
		ctx := l.Context(t.Context())
		done := p.ShutDown(t.Context())
		more, err := p.Clients[0].Mutex("more").Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		redises.Release(t, more)
		_, err = p.Clients[0].Mutex("more").Lock(lease.Bare(ctx))
		world.WantErr(t, err, holdfast.ErrClosed)
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

// The context of a quorum's lease re-enters the quorum as a whole, and no lock of one server.
func TestAContextOfAQuorumReentersNoLockOfOneServer(t *testing.T) {
	play(t, 3, func(t *testing.T, w *stage) {
		p := w.process()
		l := w.lock(p.quorum())
		_, err := p.Clients[0].Mutex(name).TryLock(l.Context(t.Context()))
		world.WantErr(t, err, holdfast.ErrBusy)
		if _, ok := p.Clients[0].Mutex(name).LeaseFrom(l.Context(t.Context())); ok {
			t.Error("the quorum's context carries the lease on one server")
		}
		redises.Release(t, l)
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
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}
