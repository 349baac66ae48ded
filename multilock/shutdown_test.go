// Work under a lease on several locks is work under way for each Client that has a part in it: its
// Shutdown waits for it, and serves it.

package multilock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redises"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

func TestShutdownServesWorkUnderSeveralLocks(t *testing.T) {
	redises.Play(t, 2, func(t *testing.T, w *redises.World) {
		p := w.Process()
		l := lockAll(w, holdfast.NewMultiLock(p.Clients[0].Mutex("a"), p.Clients[1].Mutex("b")), t.Context())
		ctx := l.Context(t.Context())
		done := p.ShutDown(t.Context())
		for _, c := range p.Clients {
			more, err := c.Mutex("more").Lock(ctx)
			if err != nil {
				t.Error(err)
				continue
			}
			redises.Release(t, more)
			_, err = c.Mutex("more").Lock(lease.Bare(ctx))
			world.WantErr(t, err, holdfast.ErrClosed)
		}
		redises.Release(t, l)
		for range p.Clients {
			if err := <-done; err != nil || w.Now() > time.Second {
				t.Errorf("%v, after %v", err, w.Now())
			}
		}
	})
}

// The context of a lease on several locks re-enters each of them.
func TestAContextOfSeveralLocksReentersEach(t *testing.T) {
	redises.Play(t, 2, func(t *testing.T, w *redises.World) {
		p := w.Process()
		m := lockAll(w, holdfast.NewMultiLock(p.Clients[0].Mutex("a"), p.Clients[1].Mutex("b")), t.Context())
		inner, err := p.Clients[0].Mutex("a").TryLock(m.Context(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		if n := inner.HoldCount(); n != 2 {
			t.Errorf("hold count %d", n)
		}
		redises.Release(t, inner, m)
	})
}

// A Lock of several locks that waits for one of them is no work yet, though it has others already.
// It ends with the Shutdown, and gives them back.
func TestShutdownEndsAWaitForSeveralLocks(t *testing.T) {
	redises.Play(t, 1, func(t *testing.T, w *redises.World) {
		p, other := w.Process(), w.Process()
		b := w.Lock(other.Clients[0].Mutex("b"))
		m := holdfast.NewMultiLock(p.Clients[0].Mutex("a"), p.Clients[0].Mutex("b"))
		failed := make(chan error, 1)
		go func() {
			_, err := m.Lock(t.Context())
			failed <- err
		}()
		time.Sleep(time.Second)
		done := p.ShutDown(t.Context())
		select {
		case err := <-failed:
			world.WantErr(t, err, holdfast.ErrClosed)
		default:
			t.Error("it waits on")
			redises.Release(t, b)
			p.Clients[0].Close()
			<-failed
		}
		if err := <-done; err != nil || w.Now() > 2*time.Second {
			t.Errorf("%v, after %v", err, w.Now())
		}
		if w.Servers[0].Exists("a") {
			t.Error("a is still held")
		}
		_ = b.Release(t.Context())
		// Under a lease, it is a part of work: it waits, and is granted.
		q := w.Process()
		outer := w.Lock(q.Clients[0].Mutex("outer"))
		done = q.ShutDown(t.Context())
		redises.Release(t, lockAll(w, holdfast.NewMultiLock(q.Clients[0].Mutex("a"), q.Clients[0].Mutex("b")), outer.Context(t.Context())), outer)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
