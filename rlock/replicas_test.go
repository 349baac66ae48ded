// This file tests the replicated tier in virtual time: what a holder's calls do when too few
// replicas acknowledge.

package rlock_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/test/redistest"
	"github.com/holdfast-go/holdfast/internal/test/world"
)

// needsReplica starts a process that requires one replica, and returns the number of replicas that
// acknowledge.
func needsReplica(w *world.World, options ...holdfast.Option) (*world.Process, *atomic.Int64) {
	acknowledge := new(atomic.Int64)
	acknowledge.Store(1)
	p := w.Process(append([]holdfast.Option{holdfast.WithReplicas(1)}, options...)...)
	p.Net.OnCommand(func(c redistest.Command) redistest.Fault {
		if c.Name == "WAIT" {
			return redistest.ReplyNumber(acknowledge.Load())
		}
		return p.Observe(c)
	})
	return p, acknowledge
}

// A call on a lease does not count if too few replicas acknowledge it. The lease that was granted
// before stays as it was.
func TestReplicas_EachCallOfAHolder(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, acknowledge := needsReplica(w)
		l := w.Lock(t.Context(), p.MyLock)
		deadline := l.Deadline()

		acknowledge.Store(0)
		world.WantErr(t, second(p.MyLock.Lock(l.Context(t.Context()))), holdfast.ErrNotReplicated)
		world.WantErr(t, l.Extend(t.Context(), time.Hour), holdfast.ErrNotReplicated)
		if got := l.Deadline(); !got.Equal(deadline) {
			t.Errorf("the deadline went by %v", got.Sub(deadline))
		}
		must(t, l.Err())

		acknowledge.Store(1)
		w.Release(w.Lock(l.Context(t.Context()), p.MyLock))
		if err := l.Extend(t.Context(), time.Minute); err != nil || !l.Deadline().After(deadline) {
			t.Errorf("Extend: %v, the deadline went by %v", err, l.Deadline().Sub(deadline))
		}
		w.Release(l)
	})
}

func TestReplicas_Attach(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, _ := needsReplica(w)
		q, acknowledge := needsReplica(w)
		owner := detach(t, w.Lock(t.Context(), p.MyLock))
		acknowledge.Store(0)
		world.WantErr(t, second(q.MyLock.Attach(t.Context(), owner)), holdfast.ErrNotReplicated)
		time.Sleep(2 * time.Second) // the hold is moved back
		acknowledge.Store(1)
		l := attach(t, q.MyLock, owner)
		w.Release(l)
	})
}

// Detach leaves a whole lease, so that there is time to attach.
func TestDetachLeavesAWholeLease(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		l := w.Lock(t.Context(), p.Mutex(world.Name, holdfast.Renewed(30*time.Second)))
		time.Sleep(9 * time.Second) // just before the lease is renewed
		owner := detach(t, l)
		if left := w.RDB.PTTL(t.Context(), world.Name).Val(); left != 30*time.Second {
			t.Errorf("%v are left", left)
		}
		l = attach(t, p.MyLock, owner)
		w.Release(l)
	})
}

// A nested lock that asks for more replicas than the outer one gets its lease only if they have it; and
// while it lasts the renewals wait for them too.
func TestANestedLockWaitsForItsOwnReplicas(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p, acknowledge := needsReplica(w, holdfast.WithReplicas(0))
		m := p.Mutex(world.Name, holdfast.Replicas(2))
		outer := w.Lock(t.Context(), p.MyLock)
		if p.Net.Count("WAIT") != 0 {
			t.Fatal("the outer lock waits for replicas")
		}
		acknowledge.Store(0)
		world.WantErr(t, second(m.Lock(outer.Context(t.Context()))), holdfast.ErrNotReplicated)
		must(t, outer.Err())
		acknowledge.Store(2)
		inner := w.Lock(outer.Context(t.Context()), m)
		before := p.Net.Count("WAIT")
		time.Sleep(time.Minute)
		if p.Net.Count("WAIT") == before {
			t.Error("the renewals do not wait for the replicas")
		}
		w.Release(inner)
		acknowledge.Store(0) // it has not been promised more than the master's word
		time.Sleep(time.Minute)
		w.Release(outer)
	})
}
