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
	p := w.Process(append(options, holdfast.WithReplicas(1))...)
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
		inner, err := p.MyLock.Lock(l.Context(t.Context()))
		world.WantErr(t, err, holdfast.ErrNotReplicated)
		if inner != nil {
			t.Error("a nested lease beside the error")
		}
		world.WantErr(t, l.Extend(t.Context(), time.Hour), holdfast.ErrNotReplicated)
		if got := l.Deadline(); !got.Equal(deadline) {
			t.Errorf("the deadline went by %v", got.Sub(deadline))
		}
		if err := l.Err(); err != nil {
			t.Errorf("the lease has ended: %v", err)
		}

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
		if l, err := q.MyLock.Attach(t.Context(), owner); l != nil {
			t.Error("attached on the master's word alone")
		} else {
			world.WantErr(t, err, holdfast.ErrNotReplicated)
		}
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
// from then on the renewals wait for them too.
func TestANestedLockWaitsForItsOwnReplicas(t *testing.T) {
	world.Play(t, func(t *testing.T, w *world.World) {
		p := w.Process()
		var waits, acknowledge atomic.Int64
		p.Net.OnCommand(func(c redistest.Command) redistest.Fault {
			if c.Name == "WAIT" {
				waits.Add(1)
				return redistest.ReplyNumber(acknowledge.Load())
			}
			return p.Observe(c)
		})
		m := p.Mutex(world.Name, holdfast.Replicas(2))
		outer := w.Lock(t.Context(), p.MyLock)
		if waits.Load() != 0 {
			t.Fatal("the outer lock waits for replicas")
		}
		_, err := m.Lock(outer.Context(t.Context()))
		world.WantErr(t, err, holdfast.ErrNotReplicated)
		must(t, outer.Err())
		acknowledge.Store(2)
		inner := w.Lock(outer.Context(t.Context()), m)
		before := waits.Load()
		time.Sleep(time.Minute)
		if waits.Load() == before {
			t.Error("the renewals do not wait for the replicas")
		}
		w.Release(inner)
		w.Release(outer)
	})
}
