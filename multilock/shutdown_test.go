// Work under a lease on several locks is work under way for each Client that has a part in it: its
// Shutdown waits for it, and serves it.

package multilock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/world"
	"github.com/holdfast-go/holdfast/lease"
)

// shutDown begins a Shutdown of every Client of the process. The channel carries what they return.
func (p *process) shutDown(ctx context.Context) <-chan error {
	done := make(chan error, len(p.clients))
	for _, c := range p.clients {
		go func() { done <- c.Shutdown(ctx) }()
	}
	synctest.Wait()
	return done
}

// holds returns the context of a lease of each kind that has a part on the process's server 0, by
// what it is on, and a function that releases them.
func (w *redises) holds(p *process) (map[string]context.Context, func()) {
	w.t.Helper()
	one := w.grab(p.clients[0].Mutex("one"))
	several := w.all(holdfast.NewMultiLock(p.clients[0].Mutex("a"), p.clients[1].Mutex("b")), w.t.Context())
	majority := w.lock(p.quorum())
	all := map[string]context.Context{
		"a lock":   one.Context(w.t.Context()),
		"multi":    several.Context(w.t.Context()),
		"a quorum": majority.Context(w.t.Context()),
	}
	return all, func() { release(w.t, one, several, majority) }
}

func TestShutdownServesWorkUnderSeveralLocks(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		p := w.process()
		all, end := w.holds(p)
		done := p.shutDown(t.Context())
		for what, ctx := range all {
			l, err := p.clients[0].Mutex("more").Lock(ctx)
			if err != nil {
				t.Errorf("under %s: %v", what, err)
				continue
			}
			release(t, l)
			_, err = p.clients[0].Mutex("more").Lock(lease.Bare(ctx))
			world.WantErr(t, err, holdfast.ErrClosed)
		}
		// A quorum, and several locks, under a quorum.
		other, err := holdfast.NewQuorum("other", p.clients).Lock(all["a quorum"])
		if err != nil {
			t.Error(err)
		} else {
			release(t, other)
		}
		release(t, w.all(holdfast.NewMultiLock(p.clients[1].Mutex("x"), p.clients[2].Mutex("y")), all["a quorum"]))
		end()
		for range p.clients {
			if err := <-done; err != nil || w.now() > time.Second {
				t.Errorf("%v, after %v", err, w.now())
			}
		}
	})
}

// A Client whose server was lost from the quorum has no part in the work any more.
func TestShutdownServesAQuorumOnlyWhereItIsHeld(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		p := w.began()
		l := w.lock(p.quorum())
		ctx := l.Context(t.Context())
		keeps := w.grab(p.clients[2].Mutex("keeps")) // so that its Shutdown waits
		w.servers[2].Del(name)
		time.Sleep(11 * time.Second)
		wantLive(t, l, ctx)
		done := p.shutDown(t.Context())
		for i, c := range p.clients {
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
		release(t, l)
		more, err := p.clients[2].Mutex("more").Lock(context.WithoutCancel(ctx))
		if err == nil {
			_ = more.Release(t.Context())
		}
		world.WantErr(t, err, holdfast.ErrClosed)
		release(t, keeps)
		for range p.clients {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// The context of a quorum's lease re-enters the quorum as a whole, and no lock of one server. That
// of a lease on several locks re-enters each.
func TestWhatAContextOfSeveralLocksReenters(t *testing.T) {
	play(t, 3, func(t *testing.T, w *redises) {
		p := w.process()
		l := w.lock(p.quorum())
		_, err := p.clients[0].Mutex(name).TryLock(l.Context(t.Context()))
		world.WantErr(t, err, holdfast.ErrBusy)
		if _, ok := p.clients[0].Mutex(name).LeaseFrom(l.Context(t.Context())); ok {
			t.Error("the quorum's context carries the lease on one server")
		}
		release(t, l)
		m := w.all(holdfast.NewMultiLock(p.clients[0].Mutex("a"), p.clients[1].Mutex("b")), t.Context())
		inner, err := p.clients[0].Mutex("a").TryLock(m.Context(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		if n := inner.HoldCount(); n != 2 {
			t.Errorf("hold count %d", n)
		}
		release(t, inner, m)
	})
}

// A Lock of several locks that waits for one of them is no work yet, though it has others already.
// It ends with the Shutdown, and gives them back.
func TestShutdownEndsAWaitForSeveralLocks(t *testing.T) {
	play(t, 1, func(t *testing.T, w *redises) {
		p, other := w.process(), w.process()
		b := w.grab(other.clients[0].Mutex("b"))
		m := holdfast.NewMultiLock(p.clients[0].Mutex("a"), p.clients[0].Mutex("b"))
		failed := make(chan error, 1)
		go func() {
			_, err := m.Lock(t.Context())
			failed <- err
		}()
		time.Sleep(time.Second)
		done := p.shutDown(t.Context())
		select {
		case err := <-failed:
			world.WantErr(t, err, holdfast.ErrClosed)
		default:
			t.Error("it waits on")
			release(t, b)
			p.clients[0].Close()
			<-failed
		}
		if err := <-done; err != nil || w.now() > 2*time.Second {
			t.Errorf("%v, after %v", err, w.now())
		}
		if w.servers[0].Exists("a") {
			t.Error("a is still held")
		}
		_ = b.Release(t.Context())
		// Under a lease, it is a part of work: it waits, and is granted.
		q := w.process()
		outer := w.grab(q.clients[0].Mutex("outer"))
		done = q.shutDown(t.Context())
		release(t, w.all(holdfast.NewMultiLock(q.clients[0].Mutex("a"), q.clients[0].Mutex("b")), outer.Context(t.Context())), outer)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
